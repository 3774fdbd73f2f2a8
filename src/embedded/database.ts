import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Clock } from '../contracts/clock.ts';
import type { Log } from '../contracts/log.ts';
import { OutcomeUnknown } from '../contracts/sandbox-driver.ts';
import { unavailable } from '../model/refusals.ts';
import type { SqlValue } from './database-library.ts';
import type { Call, FromWorker, Results, Row, ToWorker, WorkerOptions } from './database-protocol.ts';
import { STATEMENT_NAMES, type StatementName } from './database-statements.ts';
import { DatabaseRefused } from './migrations.ts';

export interface DatabaseOptions {
  readonly log: Log;
  readonly clock: Clock;
  /** How large the file may grow, in pages of 4 KiB; 0, the default: without limit. */
  readonly maxPages?: number;
  /** Calls without an answer at one time; 10,000 by default. */
  readonly maxCalls?: number;
}

/**
 * Opens or makes the file, mode 0600, brings it to this daemon's schema, and holds it until `close()`. Rejects with
 * DatabaseRefused where another process holds it, a later version wrote it, or it is no database of ours.
 */
export const openDatabase = async (path: string, options: DatabaseOptions): Promise<Database> => {
  const workerData: WorkerOptions = { path, maxPages: options.maxPages ?? 0 };
  const worker = new Worker(workerModule(), { name: 'database', workerData });
  try {
    const [first]: FromWorker[] = await once(worker, 'message', { signal: AbortSignal.timeout(OPEN_DEADLINE_MS) });
    if (first && 'kind' in first && first.kind === 'refused') throw new DatabaseRefused(first.why, first.message);
  } catch (error) {
    await worker.terminate();
    throw error;
  }
  return new Database(worker, options);
};

/** A call's answer is due after this long; then its outcome is unknown. */
export const CALL_DEADLINE_MS = 5_000;

/** The client of the thread that owns the file. Calls that come together share one commit. */
export class Database {
  /** Settles when a commit failed or the thread died, with the cause. From then on every call is refused: start again from the file. */
  readonly failed: Promise<Error>;
  readonly #worker: Worker;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #maxCalls: number;
  /** In the order they were sent, hence of their deadlines. */
  readonly #calls = new Map<number, Waiting>();
  #ticket = 0;
  #unanswered = 0;
  /** Not sent yet. */
  readonly #soon: Call[] = [];
  #cancelSoon: (() => void) | undefined;
  #cancelAlarm: (() => void) | undefined;
  #over: Error | undefined;
  #closing = false;
  #settleFailed: (cause: Error) => void = () => undefined;

  constructor(worker: Worker, { log, clock, maxCalls }: DatabaseOptions) {
    this.#worker = worker;
    this.#log = log;
    this.#clock = clock;
    this.#maxCalls = maxCalls ?? 10_000;
    this.failed = new Promise((resolve) => { this.#settleFailed = resolve; });
    worker.on('message', (message: FromWorker) => {
      if (!('kind' in message)) this.#settle(message);
      else if (message.kind === 'failed') this.#fail(new Error(`the database failed: ${message.message}`));
    });
    worker.on('error', (error) => { this.#fail(error); });
    worker.on('exit', () => { this.#fail(new Error('the database thread ended')); });
  }

  /**
   * Runs one statement; durable when it resolves, with its rows. Rejects with a plain Error where this statement failed
   * (nothing of it was written), with OutcomeUnknown where the commit failed or no answer came in 5 s, and refuses with
   * `unavailable` where nothing was tried: too many calls wait, or the database failed or was closed.
   */
  run(statement: StatementName, ...parameters: readonly SqlValue[]): Promise<readonly Row[]> {
    if (this.#soon.length > 0) this.#sendSoon();
    return this.#call(statement, parameters, (call) => this.#send(call));
  }

  /** As `run`, for a write that nobody waits for: it goes with the next call, before it, and by itself after 10 ms. */
  runSoon(statement: StatementName, ...parameters: readonly SqlValue[]): Promise<readonly Row[]> {
    return this.#call(statement, parameters, (call) => {
      this.#soon.push(call);
      this.#cancelSoon ??= this.#clock.at(this.#clock.now() + SOON_MS, this.#sendSoon);
    });
  }

  #call(statement: StatementName, parameters: readonly SqlValue[], send: (call: Call) => void): Promise<readonly Row[]> {
    if (this.#over || this.#closing) return Promise.reject(unavailable(this.#closing ? 'the database is closed' : 'the database failed'));
    if (this.#unanswered >= this.#maxCalls) return Promise.reject(unavailable('too many writes are waiting'));
    const ticket = this.#ticket++;
    const call: Call = [ticket, NUMBER_OF[statement] ?? -1, ...parameters];
    return new Promise((resolve, reject) => {
      this.#calls.set(ticket, { statement, resolve, reject, deadline: this.#clock.now() + CALL_DEADLINE_MS });
      this.#unanswered += 1;
      this.#cancelAlarm ??= this.#clock.at(this.#clock.now() + CALL_DEADLINE_MS, this.#expire);
      send(call);
    });
  }

  /** Finishes what was called, then lets go of the file. May be repeated. */
  async close(): Promise<void> {
    if (this.#worker.threadId === -1) return;
    this.#sendSoon();
    const gone = once(this.#worker, 'exit', { signal: AbortSignal.timeout(CALL_DEADLINE_MS) });
    if (!this.#closing) this.#send('close');
    this.#closing = true;
    await gone.catch(() => this.#worker.terminate());
  }

  readonly #sendSoon = (): void => {
    this.#cancelSoon?.();
    this.#cancelSoon = undefined;
    for (const call of this.#soon.splice(0)) this.#send(call);
  };

  #send(message: ToWorker): void {
    this.#worker.postMessage(message);
  }

  #settle(results: Results): void {
    for (let i = 0; i < results.length; i += 2) {
      const [ticket, result] = [results[i], results[i + 1]];
      if (typeof ticket !== 'number' || typeof result === 'number' || result === undefined) continue;
      this.#unanswered -= 1;
      const call = this.#calls.get(ticket);
      if (!call) continue; // answered after its deadline
      this.#calls.delete(ticket);
      if (typeof result === 'string') call.reject(new Error(`${call.statement}: ${result}`));
      else call.resolve(result);
    }
  }

  readonly #expire = (): void => {
    this.#cancelAlarm = undefined;
    for (const [ticket, call] of this.#calls) {
      if (call.deadline > this.#clock.now()) {
        this.#cancelAlarm = this.#clock.at(call.deadline, this.#expire);
        return;
      }
      this.#calls.delete(ticket);
      this.#log.warn({ statement: call.statement, deadlineMs: CALL_DEADLINE_MS }, 'database-call-expired');
      call.reject(new OutcomeUnknown(`${call.statement}: the database gave no answer in ${CALL_DEADLINE_MS} ms`));
    }
  };

  #fail(cause: Error): void {
    if (this.#over) return;
    this.#over = cause;
    this.#cancelAlarm?.();
    this.#cancelSoon?.();
    for (const call of this.#calls.values()) call.reject(new OutcomeUnknown(`${call.statement}: ${cause.message}`, { cause }));
    this.#calls.clear();
    if (this.#closing) return;
    this.#log.error({ error: cause }, 'database-failed');
    this.#settleFailed(cause);
  }
}

interface Waiting {
  readonly statement: StatementName;
  readonly resolve: (rows: readonly Row[]) => void;
  readonly reject: (error: Error) => void;
  readonly deadline: number;
}

/** How long a write that nobody waits for may wait for company. */
const SOON_MS = 10;
const OPEN_DEADLINE_MS = 60_000;
const NUMBER_OF: Readonly<Record<string, number>> = Object.fromEntries(STATEMENT_NAMES.map((name, index) => [name, index]));

/**
 * The worker beside this file: compiled as this one is. Sources that Node doesn't read itself need the TypeScript loader
 * registered inside the thread, which inherits none.
 */
const workerModule = (): URL => {
  if (!import.meta.url.endsWith('.ts')) return new URL('./database-worker.js', import.meta.url);
  const source = new URL('./database-worker.ts', import.meta.url);
  if ('typescript' in process.features && process.features.typescript !== false) return source;
  return new URL(`data:text/javascript,import { register } from 'node:module';
    register('tsx/esm', { parentURL: '${source.href}', data: {} }); await import('${source.href}');`.replaceAll('\n', ' '));
};
