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
  /** The size that the file may grow to, in pages of 4 KiB; 0, the default: without limit. */
  readonly maxPages?: number;
  /** The daemon's version, noted in the file for an earlier daemon that refuses it. */
  readonly version?: string;
  /** Calls without an answer at one time; 10,000 by default. */
  readonly maxCalls?: number;
  /**
   * Milliseconds that a commit may take on average before commits move to a thread of their own; 10
   * by default. They also do for a minute where a single one takes ten times as long.
   */
  readonly slowCommitMs?: () => number;
}

/**
 * Opens or makes the file, mode 0600, brings it to this daemon's schema, and holds it until
 * `close()`. Rejects with DatabaseRefused where another process holds it, a later version wrote it,
 * or it is no database of ours.
 */
export const openDatabase = async (path: string, options: DatabaseOptions): Promise<Database> =>
  new Database(path, options);

/** A call's answer is due after this long; then its outcome is unknown. */
export const CALL_DEADLINE_MS = 5_000;

/**
 * The one way to the file. Calls that come together share one commit, whose answers are given in
 * slices of the event loop. Commits run on the daemon's own thread while the disk is fast, which
 * spares a claim two wake-ups of another thread, and in a thread of their own while they would
 * block the loop.
 */
export class Database {
  /**
   * Settles when a commit failed or the thread died, with the cause. From then on every call is
   * refused: start again from the file.
   */
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
  /** Until when commits stay off the loop, since one of them held it up. */
  #apartUntil = 0;
  /** In the order they were sent, hence of their deadlines. */
  readonly #calls = new Map<number, Waiting>();
  #ticket = 0;
  #unanswered = 0;
  /** Not submitted yet. */
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
   * Runs one statement; durable when it resolves, with its rows. Rejects with a plain Error where
   * this statement failed (nothing of it was written), with OutcomeUnknown where the commit failed
   * or no answer came in 5 s, and refuses with `unavailable` where nothing was tried: too many
   * calls wait, or the database failed or was closed.
   */
  run(statement: StatementName, ...parameters: readonly SqlValue[]): Promise<readonly Row[]> {
    if (this.#soon.length > 0) this.#submitSoon();
    return this.#call(statement, parameters, (call) => {
      this.#executor.submit(call);
    });
  }

  /**
   * As `run`, for a write that nobody waits for: it goes with the next call, before it, and by
   * itself after 10 ms.
   */
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
   * Does `work` while the file stands still and is whole by itself, as of now: writes go on, to the
   * log beside it, which grows meanwhile. One at a time. Hazard: opening and closing the file in
   * this process drops its locks; a child may.
   */
  async whileStill<T>(work: (file: string) => Promise<T>): Promise<T> {
    if (this.#still) throw new Error('the database is being copied already');
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

  /** Finishes what was called, then lets go of the file. May be repeated. */
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

  /** The place where commits run, or will in a moment. */
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
      place === 'thread'
        ? 'the disk is slow: commits move to a separate thread'
        : "the disk is fast again: commits move to the daemon's thread",
    );
    this.#moving = this.#move(place);
  }

  #wanted(slow: number): Place {
    if (this.#clock.now() < this.#apartUntil || this.#commitMs > slow) return 'thread';
    return this.#commitMs < slow / MUCH_FASTER ? 'own thread' : this.#place;
  }

  /** Calls wait meanwhile. Never rejects. */
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
          `${call.statement}: the database gave no answer in ${CALL_DEADLINE_MS} ms`,
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
  /** By the monotonic clock. */
  readonly began: number;
  readonly deadline: number;
}

/** Milliseconds that a write that nobody waits for may wait for company. */
const SOON_MS = 10;
/**
 * The average is of about so many commits; one that took very long counts as so many times what is
 * slow.
 */
const COMMITS_AVERAGED = 64;
const MOST_COUNTED = 4;
/**
 * One commit that takes so many times what is slow has held up the loop for long: commits leave it
 * at once, for a minute after the last of these.
 */
const STALL = 10;
const APART_MS = 60_000;
/** The factor by which commits must be faster than slow for them to come back. */
const MUCH_FASTER = 4;
const NUMBER_OF: Readonly<Record<string, number>> = Object.fromEntries(
  STATEMENT_NAMES.map((name, index) => [name, index]),
);

export interface LoopSlicesTerms {
  /** Milliseconds that only grow; absent: the process' own. */
  readonly now?: () => number;
}

/** Milliseconds of work after which the loop goes round. */
const SLICE_MS = 4;

/**
 * Runs tasks in their order, each after the promises that the one before settled were heard. Once
 * they have kept the event loop busy for a few milliseconds, the loop goes round first: what comes
 * all at once, such as the answers of one commit, holds up nobody else's request for longer.
 */
export class LoopSlices {
  readonly #now: () => number;
  #tasks: (() => void)[] = [];
  #isRunning = false;
  #began = 0;

  constructor({ now = () => performance.now() }: LoopSlicesTerms = {}) {
    this.#now = now;
  }

  /** Runs the task, at once where none waits. It must not throw. */
  put(task: () => void): void {
    this.#tasks.push(task);
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#slice();
  }

  /** Runs at once what still waits. */
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
    // A tick that a microtask asks for comes once there are no more microtasks.
    queueMicrotask(() => {
      process.nextTick(this.#afterTask);
    });
  };

  readonly #afterTask = (): void => {
    if (this.#tasks.length > 0 && this.#now() - this.#began >= SLICE_MS) setImmediate(this.#slice);
    else this.#next();
  };
}
