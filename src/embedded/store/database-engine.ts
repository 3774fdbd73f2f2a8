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

/** In one transaction. */
export const MAX_BATCH = 256;

/** The only connection. Blocks its thread during disk I/O. */
export interface DatabaseEngine {
  /**
   * One transaction, durable on return (see UNSYNCED). A failed statement returns its reason and
   * does not affect the others.
   *
   * Throws if the transaction failed. The outcome is then unknown, so the process must end, and the
   * locks with it.
   */
  run(calls: readonly Call[]): Results;
  /**
   * `hold`: the database file has all committed data, and writes go to the log beside it until
   * `allow`.
   */
  checkpoints(order: CheckpointOrder): void;
  close(): void;
}

/** Opens or creates the file, mode 0600, and locks out all others. Throws DatabaseRefused. */
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

/** Answers in order. If a commit fails, calls `failed` once and then nothing more. */
export interface DatabaseExecutor {
  submit(call: Call): void;
  /** See DatabaseEngine; one order at a time. */
  checkpoints(order: CheckpointOrder): Promise<void>;
  /** Rejects on a timeout or failure. */
  close(withinMs: number): Promise<void>;
}

export interface ExecutorListener {
  /** Results and ms of one transaction. */
  readonly answered: (results: Results, ms: number) => void;
  readonly failed: (cause: Error) => void;
}

/**
 * Commits on the daemon's own thread: the least delay while the disk is fast, but a transaction
 * blocks the loop. Calls of one turn share a commit.
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
  /** Whether commits wait for the disk. */
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
 * Returns the reason if only this statement failed. Throws errors that endanger the transaction,
 * such as a full disk.
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
 * A write uses `get`, because errors of `all` lack SQLite's code in the package for Node 20. `get`
 * hides a failed commit, so it must run in a transaction.
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
  // Never open an existing file: closing a descriptor drops this process's locks.
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
 * SQLite keeps the connection until its statements are collected (package for Node 20); locks end
 * before that only outside WAL mode.
 */
const close = (connection: Connection): void => {
  connection.exec(
    'PRAGMA journal_mode = DELETE; PRAGMA locking_mode = NORMAL; BEGIN; SELECT 1 FROM ' +
      'sqlite_schema; COMMIT',
  );
  connection.close();
};

/** For a file that can't be read or written. */
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
