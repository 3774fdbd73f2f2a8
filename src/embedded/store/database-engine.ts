import { chmodSync, closeSync, existsSync, openSync } from 'node:fs';
import {
  connect,
  SQLITE_BUSY,
  SQLITE_LOCKED,
  SQLITE_NOTADB,
  sqliteCode,
  type Connection,
  type SqlValue,
  type Statement,
} from './database-library.ts';
import type { Call, CheckpointOrder, EngineOptions, Results, Row } from './database-protocol.ts';
import { STATEMENT_NAMES, STATEMENTS, UNSYNCED } from './database-statements.ts';
import { DatabaseRefused, ensureSchema, noteWriter } from './schema.ts';

/** Calls in one transaction. */
export const MAX_BATCH = 256;

/**
 * The one connection to the file, and its prepared statements. Blocks its thread for as long as the
 * disk takes.
 */
export interface DatabaseEngine {
  /**
   * Runs the calls in one transaction; durable when it returns (see UNSYNCED). A statement that
   * fails is answered with its reason and leaves the others alone. Throws where the transaction
   * failed: what was written is then known only to who reads the file afresh, so the process must
   * end, and with it the locks.
   */
  run(calls: readonly Call[]): Results;
  /**
   * `hold`: from now on the database file itself is not written, and holds all that was committed;
   * what follows goes to the log beside it. `allow` ends that.
   */
  checkpoints(order: CheckpointOrder): void;
  close(): void;
}

/**
 * Opens or makes the file, mode 0600, brings it to this daemon's schema, and keeps all others out.
 * Throws DatabaseRefused where another process holds it, a later version wrote it, or it is no
 * database of ours.
 */
export const openEngine = (options: EngineOptions): DatabaseEngine => {
  try {
    const connection = open(options);
    const prepared = prepareAll(connection);
    return {
      run: (calls) => runBatch(prepared, calls),
      checkpoints: (order) => {
        connection.exec(
          order === 'hold'
            ? 'PRAGMA wal_autocheckpoint = 0; PRAGMA wal_checkpoint(TRUNCATE)'
            : 'PRAGMA wal_autocheckpoint = 1000',
        );
      },
      close: () => {
        close(connection);
      },
    };
  } catch (error) {
    throw refusalOf(error, options.path);
  }
};

/**
 * Commits calls. What it was given is answered in order, or `failed` is called, once, and nothing
 * more.
 */
export interface DatabaseExecutor {
  submit(call: Call): void;
  /** See DatabaseEngine; one order at a time. */
  checkpoints(order: CheckpointOrder): Promise<void>;
  /**
   * Finishes what was submitted, `withinMs` at most, then lets go of the file. Rejects where that
   * took longer, or failed.
   */
  close(withinMs: number): Promise<void>;
}

export interface ExecutorListener {
  /** Told the results of one transaction, and the milliseconds that it took. */
  readonly answered: (results: Results, ms: number) => void;
  readonly failed: (cause: Error) => void;
}

/**
 * The daemon's own thread: calls of one turn of the loop share a commit. The way with the least
 * delay, as long as the disk answers fast: a transaction blocks the loop.
 */
export class InlineExecutor implements DatabaseExecutor {
  readonly #engine: DatabaseEngine;
  readonly #listener: ExecutorListener;
  readonly #waiting: Call[] = [];
  #over = false;

  constructor(engine: DatabaseEngine, listener: ExecutorListener) {
    this.#engine = engine;
    this.#listener = listener;
  }

  submit(call: Call): void {
    if (this.#waiting.push(call) === 1) setImmediate(this.#turn);
  }

  async checkpoints(order: CheckpointOrder): Promise<void> {
    if (this.#over) throw new Error('the database is closed');
    this.#engine.checkpoints(order);
  }

  async close(): Promise<void> {
    while (this.#waiting.length > 0 && !this.#over) this.#commit();
    if (this.#over) return;
    this.#over = true;
    this.#engine.close();
  }

  readonly #turn = (): void => {
    if (this.#over) return;
    this.#commit();
    if (this.#waiting.length > 0 && !this.#over) setImmediate(this.#turn);
  };

  #commit(): void {
    const batch = this.#waiting.splice(0, MAX_BATCH);
    if (batch.length === 0) return;
    const began = performance.now();
    let results: Results;
    try {
      results = this.#engine.run(batch);
    } catch (error) {
      this.#over = true;
      this.#listener.failed(error instanceof Error ? error : new Error(String(error)));
      return;
    }
    this.#listener.answered(results, performance.now() - began);
  }
}

const BUSY_TIMEOUT_MS = 100;
const STATEMENT_FAULTS = new Set([
  18 /* TOOBIG */, 19 /* CONSTRAINT */, 20 /* MISMATCH */, 25 /* RANGE */,
]);

interface Prepared {
  /** Whether commits wait for the disk from now on. */
  readonly synced: (is: 'FULL' | 'NORMAL') => void;
  readonly begin: Statement;
  readonly commit: Statement;
  readonly runs: readonly ((parameters: readonly SqlValue[]) => readonly Row[])[];
}

const runBatch = (prepared: Prepared, calls: readonly Call[]): Results => {
  if (!calls.every(([, index]) => isUnsynced(index))) return commitBatch(prepared, calls);
  prepared.synced('NORMAL');
  try {
    return commitBatch(prepared, calls);
  } finally {
    prepared.synced('FULL');
  }
};

const commitBatch = ({ begin, commit, runs }: Prepared, calls: readonly Call[]): Results => {
  const results: (number | readonly Row[] | string)[] = [];
  begin.run();
  for (const [ticket, index, ...parameters] of calls)
    results.push(ticket, runOne(runs[index], parameters));
  commit.run();
  return results;
};

const isUnsynced = (index: number): boolean => {
  const name = STATEMENT_NAMES[index];
  return name !== undefined && UNSYNCED.has(name);
};

/**
 * The rows, or the reason of a fault that is this statement's own. Throws what endangers the
 * transaction, such as a full disk.
 */
const runOne = (
  run: Prepared['runs'][number] | undefined,
  parameters: readonly SqlValue[],
): readonly Row[] | string => {
  try {
    return run ? run(parameters) : 'no such statement';
  } catch (error) {
    const code = sqliteCode(error);
    if (code === undefined || STATEMENT_FAULTS.has(code)) return messageOf(error);
    throw error;
  }
};

/**
 * A read answers all its rows. A write answers its first: `get`, since the errors of `all` come
 * without SQLite's code in the package for Node 20. `get` hides a failure to commit, so it must
 * never run outside a transaction.
 */
const prepareAll = (connection: Connection): Prepared => ({
  synced: (is) => {
    connection.exec(`PRAGMA synchronous = ${is}`);
  },
  begin: connection.prepare('BEGIN IMMEDIATE'),
  commit: connection.prepare('COMMIT'),
  runs: Object.values(STATEMENTS).map((sql) => {
    const statement = connection.prepare(sql);
    statement.setReturnArrays(true);
    if (/^\s*(SELECT|WITH)\b/.test(sql)) return (parameters) => statement.all(...parameters);
    return (parameters) => {
      const row: Row | undefined = statement.get(...parameters);
      return row ? [row] : [];
    };
  }),
});

const open = ({ path, maxPages, version }: EngineOptions): Connection => {
  // Never opened here when it exists: closing any descriptor of the file would drop the locks that
  // this process has on it.
  if (existsSync(path)) chmodSync(path, 0o600);
  else closeSync(openSync(path, 'a', 0o600));
  const connection = connect(path, { busyTimeoutMs: BUSY_TIMEOUT_MS });
  try {
    connection.exec(
      'PRAGMA locking_mode = EXCLUSIVE; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF',
    );
    connection.exec('BEGIN EXCLUSIVE; COMMIT');
    connection.exec(
      'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 16777216',
    );
    if (maxPages > 0) connection.exec(`PRAGMA max_page_count = ${maxPages}`);
    ensureSchema(connection, path);
    if (version !== undefined) noteWriter(connection, version);
    return connection;
  } catch (error) {
    leave(connection);
    throw error;
  }
};

/**
 * Without its locks: the package for Node 20 has no way to end a prepared statement, so SQLite
 * keeps the connection until the statements are garbage. The write-ahead log has to go for that.
 */
const close = (connection: Connection): void => {
  connection.exec(
    'PRAGMA journal_mode = DELETE; PRAGMA locking_mode = NORMAL; BEGIN; SELECT 1 FROM ' +
      'sqlite_schema; COMMIT',
  );
  connection.close();
};

/** As `close`, as far as it goes with a file that can't be read or written. */
const leave = (connection: Connection): void => {
  try {
    close(connection);
  } catch {
    connection.close();
  }
};

const refusalOf = (error: unknown, path: string): DatabaseRefused => {
  if (error instanceof DatabaseRefused) return error;
  const code = sqliteCode(error);
  if (code === SQLITE_BUSY || code === SQLITE_LOCKED) {
    return new DatabaseRefused(
      'locked',
      `${path} is in use by another process: a sandpool daemon already runs on this data folder`,
    );
  }
  if (code === SQLITE_NOTADB)
    return new DatabaseRefused('foreign', `${path} is not a database: choose another data folder`);
  return new DatabaseRefused('broken', `${path} can't be opened: ${messageOf(error)}`);
};

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
