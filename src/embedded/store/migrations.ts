import { readdirSync, readFileSync } from 'node:fs';
import type { Connection } from './database-library.ts';

/**
 * `locked`: another process holds it. `newer`: a later version wrote it. `foreign`: no database of
 * ours. `broken`: the rest.
 */
export type RefusalToOpen = 'locked' | 'newer' | 'foreign' | 'broken';

/** The file can't be used by this daemon. The message says what to do. */
export class DatabaseRefused extends Error {
  override readonly name = 'DatabaseRefused';
  readonly why: RefusalToOpen;

  constructor(why: RefusalToOpen, message: string) {
    super(message);
    this.why = why;
  }
}

/**
 * Brings the file to this daemon's schema version, one transaction per step. Throws DatabaseRefused
 * for a file of a later version, or one that isn't ours. `upTo` stops early, to build a file as an
 * older daemon left it.
 */
export const migrate = (connection: Connection, path: string, upTo = MIGRATIONS.length): void => {
  const version = versionOf(connection, path);
  if (version > MIGRATIONS.length) {
    throw new DatabaseRefused(
      'newer',
      `${path} has schema version ${version}, written by sandpool ` +
        `${writerOf(connection) ?? 'of a later version'}, and this sandpool knows up to ` +
        `${MIGRATIONS.length}: ` +
        'start the newer sandpool that wrote it, or choose another data folder',
    );
  }
  for (let next = version; next < upTo; next += 1) {
    connection.exec('BEGIN IMMEDIATE');
    try {
      connection.exec(MIGRATIONS[next] ?? '');
      connection.exec(
        `PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${next + 1}`,
      );
      connection.exec('COMMIT');
    } catch (error) {
      if (connection.isTransaction) connection.exec('ROLLBACK');
      throw error;
    }
  }
};

/**
 * Notes which version opened the file last, beside the schema: earlier daemons pass over the table,
 * and name the version when they refuse the file.
 */
export const noteWriter = (connection: Connection, version: string): void => {
  if (writerOf(connection) === version) return;
  connection.exec(
    'CREATE TABLE IF NOT EXISTS writer ' +
      '(id INTEGER PRIMARY KEY CHECK (id = 1), version TEXT NOT NULL) STRICT',
  );
  connection.prepare('INSERT OR REPLACE INTO writer VALUES (1, ?)').run(version);
};

/** Undefined if no version noted itself. */
export const writerOf = (connection: Connection): string | undefined => {
  const table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'writer'";
  if (connection.prepare(table).get() === undefined) return undefined;
  const row: unknown = connection.prepare('SELECT version FROM writer').get();
  return typeof row === 'object' && row !== null ? String(Reflect.get(row, 'version')) : undefined;
};

/** `SPdb` in ASCII. */
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

/**
 * The steps of the schema, by number. None is ever edited once released: a change of the schema is
 * a new step at the end.
 */
const FOLDER = new URL('migrations/', import.meta.url);
const MIGRATIONS: readonly string[] = readdirSync(FOLDER)
  .sort()
  .map((file) => readFileSync(new URL(file, FOLDER), 'utf8'));

export const SCHEMA_VERSION = MIGRATIONS.length;
