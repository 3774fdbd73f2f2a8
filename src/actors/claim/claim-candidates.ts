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

/** In ms, for a claim that does not wait. */
const DEADLINE_MS = 5_000;
const OUTCOME_UNKNOWN = 'the outcome of another claim is still unknown; try again';
const CONTESTED = 'too many concurrent claims on this pool; try again';
const MOST_SEARCHES = 3;

/** The caller must release `instance`. */
export interface Candidate {
  readonly instance: HeldInstance;
  readonly place: WaitingPlace | undefined;
  readonly until: number;
}

/** The caller must call `close`. */
export interface Candidates {
  readonly waits: boolean;
  next(): Promise<Candidate | undefined>;
  notFirstInQueue(held: HeldInstance): void;
  close(): Promise<void>;
}

export interface CandidatesOf {
  readonly pool: WaitedPool;
  readonly owner: Tenant;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  readonly waits?: () => void;
}

/**
 * First idle instances, then, if the claim waits, those handed to it in its turn. The caller must
 * call `close`.
 */
export class ClaimCandidates implements Candidates {
  readonly #deps: ClaimCandidatesDeps;
  readonly #of: CandidatesOf;
  readonly #began: number;
  #place: WaitingPlace | undefined;
  #line: QueueEntry | undefined;
  #endWait: (() => void) | undefined;
  /** Number of known idle instances when earlier claims had precedence. */
  #passedBy: number | undefined;
  #over = false;

  constructor(deps: ClaimCandidatesDeps, of: CandidatesOf) {
    this.#deps = deps;
    this.#of = of;
    this.#began = deps.clock.now();
  }

  get waits(): boolean {
    return this.#line !== undefined;
  }

  /** Undefined after its time is over. Rejects if the claim can't succeed any more. */
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

  /** Call it before the release of the instance. */
  notFirstInQueue({ idle }: HeldInstance): void {
    this.#passedBy = idle;
    this.#line?.pause();
  }

  /** Later claims don't wait for this one any more. Never rejects. */
  async close(): Promise<void> {
    const { coordination } = this.#deps;
    this.#line?.leave();
    if (!this.#line) return;
    this.#endWait?.();
    // if this fails, all replicas skip the position after 3 s
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
   * Reads uncached before it reports exhaustion, and waits for instances held by other claims.
   * Refuses with `unavailable` after the deadline.
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

  #unlessPending(heldAtFirst: ReadonlySet<string>, isContested: boolean): undefined {
    if (isContested) throw unavailable(CONTESTED);
    for (const id of this.#deps.supervisor.idle.heldIn(this.#of.pool.uid))
      if (heldAtFirst.has(id)) throw unavailable(OUTCOME_UNKNOWN);
  }

  /**
   * Called after earlier claims had precedence: looks for released instances, and for those that
   * the mirror lacks.
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
    // before the call, to miss no instance that turns idle during it
    this.#line = supervisor.idle.lines.enqueue(pool.uid);
    this.#place = await coordination.joinWaiting(pool);
    this.#of.waits?.();
    // never rejects; found instances turn idle, and the queue hands them out
    void supervisor.idle.look(pool.uid, pool.owner.namespace);
  }

  /** The end of the pool's queue misses a claim that is trying an instance. */
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
