import { chmodSync, closeSync, existsSync, openSync } from 'node:fs';
import { parentPort, receiveMessageOnPort, workerData, type MessagePort } from 'node:worker_threads';
import { connect, SQLITE_BUSY, SQLITE_LOCKED, SQLITE_NOTADB, sqliteCode, type Connection, type SqlValue, type Statement } from './database-library.ts';
import type { Call, FromWorker, Row, ToWorker, WorkerOptions } from './database-protocol.ts';
import { STATEMENTS } from './database-statements.ts';
import { DatabaseRefused, migrate } from './migrations.ts';

/**
 * The thread that owns the one connection. It takes every call that is waiting, runs them in one transaction, and
 * answers them all after its commit. A statement that fails is answered with its reason and leaves the others alone;
 * a transaction that fails ends this thread's work for good.
 */
const work = (port: MessagePort, options: WorkerOptions): void => {
  const say = (message: FromWorker): void => { port.postMessage(message); };
  let connection: Connection;
  let statements: Prepared;
  try {
    connection = open(options);
    statements = prepareAll(connection);
  } catch (error) {
    say(refusalOf(error, options.path));
    port.close();
    return;
  }

  port.on('message', (first: ToWorker) => {
    const calls: Call[] = [];
    let closing = false;
    for (let next: ToWorker | undefined = first; next !== undefined; next = calls.length < MAX_BATCH ? waiting(port) : undefined) {
      if (next === 'close') closing = true;
      else calls.push(next);
      if (closing) break;
    }
    try {
      if (calls.length > 0) say(runBatch(statements, calls));
    } catch (error) {
      say({ kind: 'failed', message: messageOf(error) });
      port.close(); // the connection stays as it is: the file is read afresh by the next process
      return;
    }
    if (!closing) return;
    connection.close();
    port.close();
  });
  say({ kind: 'ready' });
};

/** Calls in one transaction. */
const MAX_BATCH = 256;
const BUSY_TIMEOUT_MS = 100;
const STATEMENT_FAULTS = new Set([18 /* TOOBIG */, 19 /* CONSTRAINT */, 20 /* MISMATCH */, 25 /* RANGE */]);

const waiting = (port: MessagePort): ToWorker | undefined => receiveMessageOnPort(port)?.message;

interface Prepared {
  readonly begin: Statement;
  readonly commit: Statement;
  readonly runs: readonly ((parameters: readonly SqlValue[]) => readonly Row[])[];
}

const runBatch = ({ begin, commit, runs }: Prepared, calls: readonly Call[]): FromWorker => {
  const results: (number | readonly Row[] | string)[] = [];
  begin.run();
  for (const [ticket, index, ...parameters] of calls) results.push(ticket, runOne(runs[index], parameters));
  commit.run();
  return results;
};

/** The rows, or the reason of a fault that is this statement's own. Throws what endangers the transaction, such as a full disk. */
const runOne = (run: Prepared['runs'][number] | undefined, parameters: readonly SqlValue[]): readonly Row[] | string => {
  try {
    return run ? run(parameters) : 'no such statement';
  } catch (error) {
    const code = sqliteCode(error);
    if (code === undefined || STATEMENT_FAULTS.has(code)) return messageOf(error);
    throw error;
  }
};

/**
 * A read answers all its rows. A write answers its first: `get`, since the errors of `all` come without SQLite's code in
 * the package for Node 20. `get` hides a failure to commit, so it must never run outside a transaction.
 */
const prepareAll = (connection: Connection): Prepared => ({
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

const open = ({ path, maxPages }: WorkerOptions): Connection => {
  // Never opened here when it exists: closing any descriptor of the file would drop the locks that this process has on it.
  if (existsSync(path)) chmodSync(path, 0o600);
  else closeSync(openSync(path, 'a', 0o600));
  const connection = connect(path, { busyTimeoutMs: BUSY_TIMEOUT_MS });
  try {
    connection.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF');
    connection.exec('BEGIN EXCLUSIVE; COMMIT');
    connection.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 16777216');
    if (maxPages > 0) connection.exec(`PRAGMA max_page_count = ${maxPages}`);
    migrate(connection, path);
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
};

const refusalOf = (error: unknown, path: string): FromWorker => {
  if (error instanceof DatabaseRefused) return { kind: 'refused', why: error.why, message: error.message };
  const code = sqliteCode(error);
  if (code === SQLITE_BUSY || code === SQLITE_LOCKED) {
    return { kind: 'refused', why: 'locked', message: `${path} is in use by another process: a sandpool daemon already runs on this data folder` };
  }
  if (code === SQLITE_NOTADB) return { kind: 'refused', why: 'foreign', message: `${path} is not a database: choose another data folder` };
  return { kind: 'refused', why: 'broken', message: `${path} can't be opened: ${messageOf(error)}` };
};

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

if (parentPort) work(parentPort, workerData);
