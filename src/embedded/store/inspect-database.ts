import { statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import {
  connect,
  SQLITE_BUSY,
  SQLITE_LOCKED,
  SQLITE_NOTADB,
  sqliteCode,
  type Connection,
} from './database-library.ts';
import { APPLICATION_ID, SCHEMA_VERSION, writerOf } from './schema.ts';

/** Each cause has its own remedy. */
export interface DatabaseFault {
  readonly cause: 'newer' | 'older' | 'foreign' | 'damaged' | 'locked' | 'disk full' | 'unreadable';
  readonly message: string;
}

/**
 * About a second per gigabyte. Hazard: the caller must hold the data folder. The check writes the
 * log of a killed daemon into the file.
 */
export const inspectDatabase = (
  file: string,
): { readonly size: number; readonly fault: DatabaseFault | undefined } => {
  const { size } = statSync(file);
  const connection = connect(file, { busyTimeoutMs: 0 });
  try {
    return { size, fault: faultOf(connection, file) };
  } finally {
    connection.close();
  }
};

export const faultOf = (connection: Connection, file: string): DatabaseFault | undefined => {
  const first = (pragma: string): unknown =>
    Object.values(
      connection.prepare(`PRAGMA ${pragma}`).get() as Readonly<Record<string, unknown>>,
    )[0];
  try {
    const version = Number(first('user_version'));
    if (Number(first('application_id')) !== APPLICATION_ID)
      return { cause: 'foreign', message: 'it is a database, but not one of sandpool' };
    if (version > SCHEMA_VERSION)
      return {
        cause: 'newer',
        message:
          `a newer version of Sandpool wrote it (schema ${version}, this version knows ` +
          `${SCHEMA_VERSION}; its version: ${writerOf(connection) ?? 'unknown'})`,
      };
    if (version < SCHEMA_VERSION)
      return { cause: 'older', message: `it has schema ${version}, from before the first release` };
    const found = first('quick_check(1)');
    if (found === 'ok') return undefined;
    return { cause: 'damaged', message: `it is damaged: ${String(found).split('\n')[0] ?? ''}` };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { cause: causeOf(error, file), message };
  }
};

export const causeOf = (error: unknown, file: string): DatabaseFault['cause'] => {
  const code = sqliteCode(error);
  if (code === SQLITE_BUSY || code === SQLITE_LOCKED) return 'locked';
  if (code === SQLITE_NOTADB) return 'foreign';
  if (code === SQLITE_CORRUPT) return 'damaged';
  // On a full disk, SQLite reports an I/O error of the shared memory beside the file.
  const { bavail, bsize } = statfsSync(dirname(file));
  return code === SQLITE_FULL || bavail * bsize < NO_ROOM_BYTES ? 'disk full' : 'unreadable';
};

const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
const NO_ROOM_BYTES = 2 ** 20;
