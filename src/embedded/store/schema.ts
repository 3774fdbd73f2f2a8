import { readFileSync } from 'node:fs';
import type { Connection } from './database-library.ts';

/** `older`: from before the first release. `foreign`: not ours. `broken`: the rest. */
export type RefusalToOpen = 'locked' | 'newer' | 'older' | 'foreign' | 'broken';

/** The message says what to do. */
export class DatabaseRefused extends Error {
  override readonly name = 'DatabaseRefused';
  readonly why: RefusalToOpen;

  constructor(why: RefusalToOpen, message: string) {
    super(message);
    this.why = why;
  }
}

/** In one transaction. Throws DatabaseRefused if the file has another schema, or is not ours. */
export const ensureSchema = (connection: Connection, path: string): void => {
  const version = versionOf(connection, path);
  if (version === SCHEMA_VERSION) return;
  if (version > SCHEMA_VERSION) {
    throw new DatabaseRefused(
      'newer',
      `${path} has schema version ${version}, written by sandpool ` +
        `${writerOf(connection) ?? 'of a later version'}, and this sandpool knows up to ` +
        `${SCHEMA_VERSION}: ` +
        'start the newer sandpool that wrote it, or choose another data folder',
    );
  }
  if (version > 0) {
    throw new DatabaseRefused(
      'older',
      `${path} has schema version ${version}, from before the first release, which this sandpool ` +
        `can't read: remove the data folder, or choose another one`,
    );
  }
  connection.exec('BEGIN IMMEDIATE');
  try {
    connection.exec(SCHEMA);
    connection.exec(
      `PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}`,
    );
    connection.exec('COMMIT');
  } catch (error) {
    if (connection.isTransaction) connection.exec('ROLLBACK');
    throw error;
  }
};

/** A daemon that refuses the schema names this version. */
export const noteWriter = (connection: Connection, version: string): void => {
  if (writerOf(connection) === version) return;
  connection.prepare('INSERT OR REPLACE INTO writer VALUES (1, ?)').run(version);
};

export const writerOf = (connection: Connection): string | undefined => {
  const row: unknown = connection.prepare('SELECT version FROM writer').get();
  return typeof row === 'object' && row !== null ? String(Reflect.get(row, 'version')) : undefined;
};

export const APPLICATION_ID = 0x53_50_64_62;

const versionOf = (connection: Connection, path: string): number => {
  const version = pragma(connection, 'user_version');
  const objects = Number(
    Object.values(connection.prepare('SELECT COUNT(*) FROM sqlite_schema').get())[0],
  );
  const ours = pragma(connection, 'application_id') === APPLICATION_ID;
  if (!ours && (version !== 0 || objects > 0)) {
    throw new DatabaseRefused(
      'foreign',
      `${path} is a database, but not one of sandpool: choose another data folder`,
    );
  }
  return version;
};

const pragma = (connection: Connection, name: string): number =>
  Number(Object.values(connection.prepare(`PRAGMA ${name}`).get())[0]);

/** Above the numbers from before the first release, 1 to 21. */
export const SCHEMA_VERSION = 22;

const SCHEMA = readFileSync(new URL('schema.sql', import.meta.url), 'utf8');
