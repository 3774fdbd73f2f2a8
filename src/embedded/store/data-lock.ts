import { join } from 'node:path';
import { connect, SQLITE_BUSY, sqliteCode, type Connection } from './database-library.ts';

export class DataDirTaken extends Error {
  override readonly name = 'DataDirTaken';
}

export interface DataLock {
  /** May be repeated. */
  release(): void;
}

/**
 * Held until `release()` or the process's end, even by a crash. Throws DataDirTaken.
 *
 * Hazard: opening and closing `lock.db` in this process by anything but SQLite drops the lock.
 */
export const lockDataDir = (dataDir: string): DataLock => {
  const connection = connect(join(dataDir, 'lock.db'), { busyTimeoutMs: 0 });
  try {
    connection.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    connection.close();
    if (sqliteCode(error) !== SQLITE_BUSY) throw error;
    throw new DataDirTaken(
      `another process holds ${dataDir}: a sandpool daemon already runs on this data folder`,
      { cause: error },
    );
  }
  held.add(connection);
  return {
    release: () => {
      if (held.delete(connection)) connection.close();
    },
  };
};

/** The garbage collector would close them. */
const held = new Set<Connection>();
