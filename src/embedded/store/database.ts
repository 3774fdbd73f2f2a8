import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import type { Metrics } from '../../contracts/metrics.ts';
import { OutcomeUnknown } from '../../contracts/sandbox-driver.ts';
import { unavailable } from '../../model/refusals.ts';
import { InlineExecutor, openEngine, type DatabaseExecutor } from './database-engine.ts';
import type { SqlValue } from './database-library.ts';
import type { Call, EngineOptions, Results, Row } from './database-protocol.ts';
import { QueueingExecutor, WorkerExecutor } from './database-executor.ts';
import { STATEMENT_NAMES, type StatementName } from './database-statements.ts';

export interface DatabaseOptions {
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Pages of 4 KiB; 0, the default: no limit. */
  readonly maxPages?: number;
  /** An earlier daemon that refuses the file names it. */
  readonly version?: string;
  /** Unanswered; 10,000 by default. */
  readonly maxCalls?: number;
  /**
   * Average ms of a commit above which commits move to their own thread; 10 by default. One commit
   * of ten times that also moves them, for a minute.
   */
  readonly slowCommitMs?: () => number;
}

/**
 * Mode 0600, locked until `close()`. Rejects with DatabaseRefused if another process holds the
 * file, a later version wrote it, or it is not ours.
 */
export const openDatabase = async (path: string, options: DatabaseOptions): Promise<Database> =>
  new Database(path, options);

/** The outcome is unknown afterwards. */
export const CALL_DEADLINE_MS = 5_000;

/**
 * Concurrent calls share a commit.
 *
 * While the disk is fast, commits run on the daemon's thread, which saves a claim two wake-ups, and
 * else in their own.
 */
export class Database {
  /** Settles with the cause if a commit failed or the thread died. All later calls are refused. */
  readonly failed: Promise<Error>;
  readonly #file: EngineOptions;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #metrics: Metrics;
  readonly #maxCalls: number;
  readonly #slowCommitMs: () => number;
  readonly #listener = {
    answered: (results: Results, ms: number): void => {
      this.#settle(results);
      this.#took(ms);
    },
    failed: (cause: Error): void => {
      this.#fail(new Error(`the database failed: ${cause.message}`, { cause }));
    },
  };
  readonly #answers = new LoopSlices();
  #executor: DatabaseExecutor;
  #place: Place = 'own thread';
  #moving: Promise<void> | undefined;
  #commitMs = 0;
  /** Commits stay off the loop until then. */
  #apartUntil = 0;
  /** In the order of sending and so of deadlines. */
  readonly #calls = new Map<number, Waiting>();
  #ticket = 0;
  #unanswered = 0;
  readonly #soon: Call[] = [];
  #cancelSoon: (() => void) | undefined;
  #cancelAlarm: (() => void) | undefined;
  #over: Error | undefined;
  #closing = false;
  #still = false;
  #settleFailed: (cause: Error) => void = () => undefined;

  constructor(
    path: string,
    { log, clock, metrics, maxPages, version, maxCalls, slowCommitMs }: DatabaseOptions,
  ) {
    this.#file = { path, maxPages: maxPages ?? 0, version };
    this.#log = log;
    this.#clock = clock;
    this.#metrics = metrics;
    this.#maxCalls = maxCalls ?? 10_000;
    this.#slowCommitMs = slowCommitMs ?? (() => 10);
    this.failed = new Promise((resolve) => {
      this.#settleFailed = resolve;
    });
    this.#executor = this.#take('own thread');
  }

  /**
   * Resolves when durable. Rejects with a plain Error if the statement failed without effect, and
   * with OutcomeUnknown if the commit failed or took over 5 s.
   *
   * Refuses with `unavailable` if nothing was tried.
   */
  run(statement: StatementName, ...parameters: readonly SqlValue[]): Promise<readonly Row[]> {
    if (this.#soon.length > 0) this.#submitSoon();
    return this.#call(statement, parameters, (call) => {
      this.#executor.submit(call);
    });
  }

  /** For a write that no caller waits for: goes with the next call, or after 10 ms. */
  runSoon(statement: StatementName, ...parameters: readonly SqlValue[]): Promise<readonly Row[]> {
    return this.#call(statement, parameters, (call) => {
      this.#soon.push(call);
      this.#cancelSoon ??= this.#clock.at(this.#clock.now() + SOON_MS, this.#submitSoon);
    });
  }

  #call(
    statement: StatementName,
    parameters: readonly SqlValue[],
    submit: (call: Call) => void,
  ): Promise<readonly Row[]> {
    if (this.#over || this.#closing)
      return Promise.reject(
        unavailable(this.#closing ? 'the database is closed' : 'the database failed'),
      );
    if (this.#unanswered >= this.#maxCalls)
      return Promise.reject(unavailable('too many writes are waiting'));
    const ticket = this.#ticket++;
    const call: Call = [ticket, NUMBER_OF[statement] ?? -1, ...parameters];
    return new Promise((resolve, reject) => {
      this.#calls.set(ticket, {
        statement,
        resolve,
        reject,
        began: performance.now(),
        deadline: this.#clock.now() + CALL_DEADLINE_MS,
      });
      this.#unanswered += 1;
      this.#cancelAlarm ??= this.#clock.at(this.#clock.now() + CALL_DEADLINE_MS, this.#expire);
      submit(call);
    });
  }

  /**
   * The file is complete and unchanged during `work`; writes go to the log beside it, which grows.
   * One call at a time. Hazard: opening and closing the file in this process drops its locks; a
   * child process may do so.
   */
  async whileStill<T>(work: (file: string) => Promise<T>): Promise<T> {
    if (this.#still) throw new Error('the database is already being copied');
    this.#still = true;
    try {
      await this.#moving;
      await this.#executor.checkpoints('hold');
      return await work(this.#file.path);
    } finally {
      if (!this.#over && !this.#closing) await this.#executor.checkpoints('allow');
      this.#still = false;
    }
  }

  /** Finishes pending calls first. May be repeated. */
  async close(): Promise<void> {
    this.#submitSoon();
    this.#closing = true;
    await this.#moving;
    await this.#executor.close(CALL_DEADLINE_MS).catch((error: unknown) => {
      this.#log.warn({ error }, 'database-not-closed');
    });
    this.#answers.flush();
  }

  readonly #submitSoon = (): void => {
    this.#cancelSoon?.();
    this.#cancelSoon = undefined;
    for (const call of this.#soon.splice(0)) this.#executor.submit(call);
  };

  /** Where commits run, or will after the current move. */
  get executor(): Place {
    return this.#place;
  }

  #took(ms: number): void {
    const slow = this.#slowCommitMs();
    this.#commitMs += (Math.min(ms, MOST_COUNTED * slow) - this.#commitMs) / COMMITS_AVERAGED;
    if (ms > STALL * slow) this.#apartUntil = this.#clock.now() + APART_MS;
    const place = this.#wanted(slow);
    if (
      place === this.#place ||
      this.#executor instanceof QueueingExecutor ||
      this.#closing ||
      this.#still ||
      this.#over
    )
      return;
    this.#log.info(
      { commitMs: this.#commitMs },
      place === 'thread' ? 'disk-slow' : 'disk-fast-again',
    );
    this.#moving = this.#move(place);
  }

  #wanted(slow: number): Place {
    if (this.#clock.now() < this.#apartUntil || this.#commitMs > slow) return 'thread';
    return this.#commitMs < slow / MUCH_FASTER ? 'own thread' : this.#place;
  }

  /** Calls wait during the move. Never rejects. */
  async #move(place: Place): Promise<void> {
    const [from, room] = [this.#executor, new QueueingExecutor()];
    this.#executor = room;
    this.#place = place;
    try {
      await from.close(CALL_DEADLINE_MS);
      if (this.#over) return;
      this.#executor = this.#take(place);
      for (const call of room.calls) this.#executor.submit(call);
    } catch (error) {
      this.#listener.failed(error instanceof Error ? error : new Error(String(error)));
    } finally {
      this.#moving = undefined;
    }
  }

  #take(place: Place): DatabaseExecutor {
    return place === 'thread'
      ? new WorkerExecutor(this.#file, this.#listener)
      : new InlineExecutor(openEngine(this.#file), this.#listener);
  }

  #settle(results: Results): void {
    for (let i = 0; i < results.length; i += 2) {
      const [ticket, result] = [results[i], results[i + 1]];
      if (typeof ticket !== 'number' || typeof result === 'number' || result === undefined)
        continue;
      this.#unanswered -= 1;
      const call = this.#calls.get(ticket);
      if (!call) continue; // answered after its deadline
      this.#calls.delete(ticket);
      this.#metrics.observe(
        'sandpool_store_seconds',
        { store: 'sqlite', operation: call.statement },
        (performance.now() - call.began) / 1_000,
      );
      this.#answers.put(() => {
        if (typeof result !== 'string') call.resolve(result);
        else this.#fails(call, new Error(`${call.statement}: ${result}`));
      });
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
      this.#log.warn(
        { statement: call.statement, deadlineMs: CALL_DEADLINE_MS },
        'database-call-expired',
      );
      this.#fails(
        call,
        new OutcomeUnknown(
          `${call.statement}: the database did not answer in ${CALL_DEADLINE_MS} ms`,
        ),
      );
    }
  };

  #fails({ statement, reject }: Waiting, error: Error): void {
    this.#metrics.count('sandpool_store_failures_total', { store: 'sqlite', operation: statement });
    reject(error);
  }

  #fail(cause: Error): void {
    if (this.#over) return;
    this.#over = cause;
    this.#cancelAlarm?.();
    this.#cancelSoon?.();
    for (const call of this.#calls.values())
      this.#fails(call, new OutcomeUnknown(`${call.statement}: ${cause.message}`, { cause }));
    this.#calls.clear();
    if (this.#closing) return;
    this.#log.error({ error: cause }, 'database-failed');
    this.#settleFailed(cause);
  }
}

type Place = 'own thread' | 'thread';

interface Waiting {
  readonly statement: StatementName;
  readonly resolve: (rows: readonly Row[]) => void;
  readonly reject: (error: Error) => void;
  /** Monotonic. */
  readonly began: number;
  readonly deadline: number;
}

/** For another call to share the commit. */
const SOON_MS = 10;
/** A very long commit counts as at most MOST_COUNTED times the limit. */
const COMMITS_AVERAGED = 64;
const MOST_COUNTED = 4;
/** Factor of the limit from which commits leave the loop for APART_MS. */
const STALL = 10;
const APART_MS = 60_000;
/** Factor below the limit at which commits return to the loop. */
const MUCH_FASTER = 4;
const NUMBER_OF: Readonly<Record<string, number>> = Object.fromEntries(
  STATEMENT_NAMES.map((name, index) => [name, index]),
);

export interface LoopSlicesTerms {
  /** Monotonic ms. */
  readonly now?: () => number;
}

/** Before the event loop gets a turn. */
const SLICE_MS = 4;

/**
 * Runs tasks in order, each after the reactions to the previous one's promises, and gives the event
 * loop a turn after a few ms: a burst does not delay other requests.
 */
export class LoopSlices {
  readonly #now: () => number;
  #tasks: (() => void)[] = [];
  #isRunning = false;
  #began = 0;

  constructor({ now = () => performance.now() }: LoopSlicesTerms = {}) {
    this.#now = now;
  }

  /** Runs the task at once if none waits. It must not throw. */
  put(task: () => void): void {
    this.#tasks.push(task);
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#slice();
  }

  flush(): void {
    for (const task of this.#tasks.splice(0)) task();
  }

  readonly #slice = (): void => {
    this.#began = this.#now();
    this.#next();
  };

  readonly #next = (): void => {
    const task = this.#tasks.shift();
    if (!task) {
      this.#isRunning = false;
      return;
    }
    task();
    // Node runs a tick requested in a microtask only after all microtasks.
    queueMicrotask(() => {
      process.nextTick(this.#afterTask);
    });
  };

  readonly #afterTask = (): void => {
    if (this.#tasks.length > 0 && this.#now() - this.#began >= SLICE_MS) setImmediate(this.#slice);
    else this.#next();
  };
}
