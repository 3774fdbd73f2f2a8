import type { Tenant } from '../../model/tenant.ts';
import type {
  IdleInstances,
  HeldInstance,
  EndOfWaiting,
  QueueEntry,
} from '../sandbox/idle-instances.ts';
import type { Supervisor } from '../sandbox/supervisor.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { Claims, WaitedPool, WaitingPlace } from '../../contracts/coordination/claims.ts';
import { poolBeingDeleted, unavailable } from '../../model/refusals.ts';
import type { WaitingClaimLimit } from './waiting-claim-limit.ts';

export interface ClaimCandidatesDeps {
  readonly supervisor: {
    readonly idle: IdleInstances;
    readonly pools: Pick<Supervisor['pools'], 'recordOf'>;
  };
  readonly coordination: Claims;
  readonly clock: Clock;
  readonly waitingLimit: WaitingClaimLimit;
}

/**
 * How long a claim may take that does not wait, and that has something to try for. Milliseconds.
 */
const DEADLINE_MS = 5_000;
const OUTCOME_UNKNOWN = 'the outcome of another claim is still unknown; try again';
const CONTESTED = 'too many concurrent claims on this pool; try again';
/**
 * How often a claim that does not wait, and that others came before, looks for more idle ones than
 * it knew of.
 */
const MOST_SEARCHES = 3;

/**
 * An instance to try for: `until` then, at `place` in the order of those who wait. Whoever is given
 * it releases `instance`.
 */
export interface Candidate {
  readonly instance: HeldInstance;
  readonly place: WaitingPlace | undefined;
  readonly until: number;
}

/** Offers one claim what it tries for, one after the other. To be closed. */
export interface Candidates {
  /** Whether the claim waits by now. */
  readonly waits: boolean;
  next(): Promise<Candidate | undefined>;
  notFirstInQueue(held: HeldInstance): void;
  close(): Promise<void>;
}

export interface CandidatesOf {
  readonly pool: WaitedPool;
  /** Who claims. */
  readonly owner: Tenant;
  /** 0: it does not wait. */
  readonly waitMs: number;
  /** Aborts when nobody waits for the claim any more, or may. */
  readonly signal: AbortSignal | undefined;
  /** Told once it waits. */
  readonly waits?: () => void;
}

/**
 * Offers what one claim tries for, one after the other: what is idle, then, where it waits, what is
 * handed to it when its turn comes. To be closed.
 */
export class ClaimCandidates implements Candidates {
  readonly #deps: ClaimCandidatesDeps;
  readonly #of: CandidatesOf;
  readonly #began: number;
  #place: WaitingPlace | undefined;
  #line: QueueEntry | undefined;
  #endWait: (() => void) | undefined;
  /** How many it knew to be idle when others came before it. */
  #passedBy: number | undefined;
  #over = false;

  constructor(deps: ClaimCandidatesDeps, of: CandidatesOf) {
    this.#deps = deps;
    this.#of = of;
    this.#began = deps.clock.now();
  }

  /** Whether it has a place in line by now. */
  get waits(): boolean {
    return this.#line !== undefined;
  }

  /** Undefined: there is none, and its time is over. Rejects where there will be none. */
  async next(): Promise<Candidate | undefined> {
    const { pool, waitMs } = this.#of;
    const {
      supervisor: { idle },
      clock,
    } = this.#deps;
    if (waitMs === 0) return this.#candidate(await this.#search(this.#began + DEADLINE_MS));
    if (!this.#line) {
      const instance = this.#passedBy === undefined ? idle.acquire(pool.uid) : undefined;
      if (instance) return this.#candidate(instance);
      await this.#join();
    }
    if (this.#over) return undefined;
    this.#requirePool();
    const next = (await this.#line?.next(this.#began + waitMs, this.#of.signal)) ?? 'over';
    if (typeof next === 'object') return this.#candidate(next);
    if (next !== 'over') throw this.#refusalOf(next);
    this.#over = true;
    return this.#candidate(await this.#search(clock.now() + DEADLINE_MS));
  }

  /** It was not the claim's turn. To be called before the instance is released. */
  notFirstInQueue({ idle }: HeldInstance): void {
    this.#passedBy = idle;
    this.#line?.pause();
  }

  /**
   * Resolves once its place in line is left, so that nobody who asks from then on comes behind it.
   * Never rejects.
   */
  async close(): Promise<void> {
    const { coordination } = this.#deps;
    this.#line?.leave();
    if (!this.#line) return;
    this.#endWait?.();
    // then it is skipped: see Claims
    if (this.#place) await coordination.leaveWaiting(this.#place).catch(() => undefined);
  }

  #candidate(instance: HeldInstance | undefined): Candidate | undefined {
    const { clock } = this.#deps;
    if (!instance) return undefined;
    if (this.#of.signal?.aborted) {
      instance.release();
      throw this.#refusalOf('gone');
    }
    return {
      instance,
      place: this.#place,
      until: (this.#of.waitMs === 0 ? this.#began : clock.now()) + DEADLINE_MS,
    };
  }

  /**
   * Looks uncached before it says that there is none, and waits for what other claims hold: one
   * that they do not get was idle all the while. A look is over where it has found enough: where
   * others got all that it found, the next one finds more. Refuses with `unavailable` where that
   * does not show in time.
   */
  async #search(until: number): Promise<HeldInstance | undefined> {
    const {
      supervisor: { idle },
      clock,
    } = this.#deps;
    const {
      waitMs,
      pool: {
        uid,
        owner: { namespace },
      },
    } = this.#of;
    if (this.#passedBy !== undefined && waitMs === 0)
      return await this.#searchForMore(this.#passedBy, until);
    let heldAtFirst: ReadonlySet<string> | undefined;
    for (let known = 0; ;) {
      const isLast = clock.now() >= until;
      const instance = idle.acquire(uid);
      if (instance) return instance;
      const found = await idle.find(uid, namespace, known + 1);
      if (found.instance) return found.instance;
      heldAtFirst ??= idle.heldIn(uid);
      const held = await idle.untilReleased(uid, until);
      if (held === undefined && found.ready <= known) return undefined;
      if (isLast) return this.#unlessPending(heldAtFirst, found.ready > known);
      known = found.ready;
    }
  }

  /** One of those may be idle, though others may have held it in between. */
  #unlessPending(heldAtFirst: ReadonlySet<string>, isContested: boolean): undefined {
    if (isContested) throw unavailable(CONTESTED);
    for (const id of this.#deps.supervisor.idle.heldIn(this.#of.pool.uid))
      if (heldAtFirst.has(id)) throw unavailable(OUTCOME_UNKNOWN);
  }

  /**
   * More may be idle than it knew of when others came before it: what claims held that did not get
   * it, and what the mirror did not show.
   */
  async #searchForMore(least: number, until: number): Promise<HeldInstance | undefined> {
    const {
      supervisor: { idle },
      clock,
    } = this.#deps;
    const {
      uid,
      owner: { namespace },
    } = this.#of.pool;
    let known = least;
    for (let search = 0; search < MOST_SEARCHES && clock.now() < until; search++) {
      const held = await idle.untilReleased(uid, until);
      const { instance, ready } = await idle.find(uid, namespace, known + 1);
      if (instance && instance.idle > least) return instance;
      instance?.release();
      if (held === undefined && ready <= known) return undefined;
      known = Math.max(known, ready);
    }
    return undefined;
  }

  async #join(): Promise<void> {
    const { supervisor, coordination, waitingLimit } = this.#deps;
    const { pool, owner } = this.#of;
    if (supervisor.idle.lines.stopping) throw this.#refusalOf('stopping');
    this.#endWait = waitingLimit.acquire(owner);
    // before the call: what turns idle meanwhile is not missed
    this.#line = supervisor.idle.lines.enqueue(pool.uid);
    this.#place = await coordination.joinWaiting(pool);
    this.#of.waits?.();
    // never rejects; what it finds turns idle, and is handed out
    void supervisor.idle.look(pool.uid, pool.owner.namespace);
  }

  /**
   * Refuses where the pool is being deleted: its line was told, one that tried for an instance
   * meanwhile has not heard.
   */
  #requirePool(): void {
    if (this.#deps.supervisor.pools.recordOf(this.#of.pool.uid)?.deleting !== false)
      throw this.#refusalOf('deleted');
  }

  #refusalOf(why: Exclude<EndOfWaiting, 'over'>): unknown {
    switch (why) {
      case 'deleted':
        return poolBeingDeleted();
      case 'stopping':
        return unavailable('the daemon is stopping; claim again');
      case 'gone':
        return this.#of.signal?.reason;
    }
  }
}
