import type { Clock } from '../contracts/clock.ts';
import type { FinishedFilter, History } from '../contracts/history.ts';
import type { Log } from '../contracts/log.ts';
import type { FinishedSandbox } from '../model/sandbox.ts';
import type { Database } from './database.ts';
import type { Row } from './database-protocol.ts';

export interface HistoryOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** How long a finished sandbox is kept, in ms after it ended. */
  readonly retentionMs: number;
}

/**
 * Finished sandboxes in SQLite. Rows stand in groups, one an owner and pool, and each group knows how many it has: a
 * total is a sum over the groups of a filter, a page is merged from the newest of each. `since` counts and sorts what
 * ended since. `start()` begins to forget what is older than retention; `stop()` ends that.
 */
export class SqliteHistory implements History {
  readonly #database: Database;
  readonly #options: HistoryOptions;
  #cancelSweep: (() => void) | undefined;
  #sweeping: Promise<void> = Promise.resolve();
  #running = false;

  constructor(database: Database, options: HistoryOptions) {
    this.#database = database;
    this.#options = options;
  }

  start(): void {
    if (this.#running) return;
    this.#running = true;
    this.#sweepAt(0);
  }

  /** Resolves when the step under way, if any, has ended. */
  async stop(): Promise<void> {
    this.#running = false;
    this.#cancelSweep?.();
    await this.#sweeping;
  }

  async record(finished: FinishedSandbox): Promise<void> {
    const { id, owner: { namespace, team, user }, poolName, claimedAt, terminatedAt } = finished;
    await this.#database.run('history.record', id, namespace, team, user, poolName, claimedAt, terminatedAt, JSON.stringify(finished));
  }

  async list(filter: FinishedFilter, { offset, limit }: { readonly offset: number; readonly limit: number }): Promise<{ readonly items: readonly FinishedSandbox[]; readonly total: number }> {
    const [total, ...bodies] = await this.#rows(filter, offset, limit);
    return {
      total: Number(total?.[0] ?? 0),
      items: bodies.map(([body]) => JSON.parse(String(body)) as FinishedSandbox),
    };
  }

  #rows({ owner, since, ...filter }: FinishedFilter, offset: number, limit: number): Promise<readonly Row[]> {
    if (owner && contradicts(owner, filter)) return Promise.resolve([]);
    const { namespace, team, user } = owner ?? filter;
    const groups = [namespace ?? null, team ?? null, user ?? null, filter.poolName ?? null];
    const ofOwner = namespace !== undefined && team !== undefined && user !== undefined;
    if (since !== undefined) return this.#database.run(ofOwner ? 'history.pageOfOwnerSince' : 'history.pageOfAnySince', ...groups, since, limit, offset);
    if (groups.every((part) => part === null)) return this.#database.run('history.pageOfAll', limit, offset);
    return this.#database.run(ofOwner ? 'history.pageOfOwner' : 'history.pageOfAny', ...groups, offset + limit, limit, offset);
  }

  #sweepAt(delayMs: number): void {
    if (!this.#running) return;
    const { clock } = this.#options;
    this.#cancelSweep = clock.at(clock.now() + delayMs, () => { this.#sweeping = this.#sweep(); });
  }

  /** One step, then the next one: soon while there is more, else in a minute. Never rejects. */
  async #sweep(): Promise<void> {
    const { clock, log, retentionMs } = this.#options;
    let pause = SWEEP_PAUSE_MS;
    try {
      const gone = await this.#database.run('history.forget', clock.now() - retentionMs, SWEEP_ROWS);
      if (gone.length > 0) log.debug({ rows: gone.length }, 'history-forgotten');
      if (gone.length === SWEEP_ROWS) pause = STEP_PAUSE_MS;
    } catch (error) {
      log.warn({ error }, 'history-not-forgotten');
    }
    this.#sweepAt(pause);
  }
}

export const sqliteHistory = (database: Database, options: HistoryOptions): SqliteHistory => new SqliteHistory(database, options);

/** Rows forgotten in one step: a few ms of the thread that claims wait for. */
export const SWEEP_ROWS = 100;
const STEP_PAUSE_MS = 50;
export const SWEEP_PAUSE_MS = 60_000;

/** An owner together with parts that aren't the owner's matches nothing. */
const contradicts = (owner: NonNullable<FinishedFilter['owner']>, { namespace, team, user }: FinishedFilter): boolean =>
  (namespace ?? owner.namespace) !== owner.namespace || (team ?? owner.team) !== owner.team || (user ?? owner.user) !== owner.user;
