import { connect } from '../src/embedded/store/database-library.ts';

export interface BareTable {
  /** Durable when it returns. Answers the row's number. */
  insert(body: string): number;
  /** All in one commit. */
  insertAll(bodies: readonly string[]): readonly number[];
}

/**
 * A table with one column, in a file of its own; the library and settings are those of the daemon.
 */
export const openBareTable = (path: string): BareTable => {
  const connection = connect(path, { busyTimeoutMs: 100 });
  connection.exec(
    'PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL',
  );
  connection.exec('CREATE TABLE IF NOT EXISTS claims (id INTEGER PRIMARY KEY, body TEXT NOT NULL)');
  const statement = connection.prepare('INSERT INTO claims (body) VALUES (?)');
  const insert = (body: string): number => Number(statement.run(body).lastInsertRowid);
  return {
    insert,
    insertAll: (bodies) => {
      if (bodies.length === 1) return bodies.map(insert);
      connection.exec('BEGIN IMMEDIATE');
      const ids = bodies.map(insert);
      connection.exec('COMMIT');
      return ids;
    },
  };
};
