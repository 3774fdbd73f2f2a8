import { rendezvous } from '../../lib/rendezvous.ts';
import { ALL_BUCKETS, type SandboxIndex } from './sandbox-index.ts';
import type { Log } from '../../contracts/log.ts';
import type { SandboxDriver } from '../../contracts/sandbox-driver.ts';
import { unavailable } from '../../model/refusals.ts';
import type { InstanceFact } from '../../model/sandbox.ts';
import type { Waiters } from '../runtime/actor-host.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { Clock } from '../../contracts/clock.ts';

export interface IdleInstancesDeps {
  readonly driver: Pick<SandboxDriver, 'idle'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly index: SandboxIndex;
  readonly waiters: Waiters;
  /** The pool's own revision: its instances go before others. */
  readonly revisionOf: (poolUid: string) => string;
  /** The buckets to take from first; all where it answers none. */
  readonly ownBuckets: () => readonly number[] | undefined;
  readonly learn: (fact: InstanceFact) => void;
  /** An instance of the pool is nobody's again. */
  readonly freed: (poolUid: string) => void;
}

/**
 * Describes what a look came to: how many it found ready, and the one that was acquired of them, if
 * others did not get them all.
 */
export interface Found {
  readonly ready: number;
  readonly instance: HeldInstance | undefined;
}

/**
 * The idle instances of all pools, for claims. One that a claim holds is nobody else's in this
 * process until it is released.
 */
export class IdleInstances {
  /** The claims that wait for one. */
  readonly lines: ClaimQueue;
  readonly #deps: IdleInstancesDeps;

  constructor(deps: IdleInstancesDeps) {
    this.#deps = deps;
    this.lines = new ClaimQueue({
      clock: deps.clock,
      acquire: (poolUid) => this.acquire(poolUid),
    });
  }

  /** Acquires the longest idle instance of the pool, of its revision before others. */
  acquire(poolUid: string): HeldInstance | undefined {
    const { index, revisionOf, ownBuckets } = this.#deps;
    const id = index.acquire(poolUid, revisionOf(poolUid), ownBuckets());
    if (id === undefined) return undefined;
    return new HeldInstance({
      id,
      idle: index.idleIn(poolUid) + 1,
      released: () => {
        this.#release(poolUid, id);
      },
    });
  }

  /** The one that the next claim of the pool will most likely get; it stays as it is. */
  next(poolUid: string): string | undefined {
    const { index, revisionOf, ownBuckets } = this.#deps;
    return index.nextIdle(poolUid, revisionOf(poolUid), ownBuckets());
  }

  /**
   * Acquires one after an uncached look at what the mirror may not show yet, of which `atLeast` so
   * many are to be known. Refuses with `unavailable` where the truth is out of reach.
   */
  async find(poolUid: string, namespace: string, atLeast: number): Promise<Found> {
    const ready = await this.look(poolUid, namespace, atLeast);
    if (ready === undefined)
      throw unavailable('it is not known right now whether an instance is idle; try again');
    return { ready, instance: this.acquire(poolUid) };
  }

  /**
   * Looks uncached: what is idle, and not shown so yet, turns idle here. Returns how many were
   * found to be; fewer than `atLeast`: there were no others. Never rejects; undefined where the
   * truth is out of reach.
   */
  async look(poolUid: string, namespace: string, atLeast = 1): Promise<number | undefined> {
    const { driver, log, learn } = this.#deps;
    try {
      const ready = await driver.idle(poolUid, namespace, atLeast);
      for (const fact of ready) learn(fact);
      return ready.length;
    } catch (error) {
      log.warn({ poolUid, error }, 'idle instances could not be listed');
      return undefined;
    }
  }

  /**
   * Waits until the one of the pool's that claims of this process have held the longest is released
   * or gone, and returns its id; undefined, at once, where there is none.
   */
  async untilReleased(poolUid: string, until: number): Promise<string | undefined> {
    const { index, waiters } = this.#deps;
    const id = index.heldOf(poolUid);
    if (id !== undefined) await waiters.until(id, () => !index.isHeld(id), until);
    return id;
  }

  /** Lists what claims of this process hold of the pool. */
  heldIn(poolUid: string): ReadonlySet<string> {
    return new Set(this.#deps.index.heldIn(poolUid));
  }

  #release(poolUid: string, id: string): void {
    const { index, waiters, freed } = this.#deps;
    const isIdle = index.release(poolUid, id);
    waiters.changed(id);
    if (!isIdle) return;
    freed(poolUid);
    this.lines.offer(poolUid);
  }
}

/**
 * Holds an idle instance for one claim: no other claim of this process tries for it, and no pool
 * gives it up, until it is released. Its claim releases it, whichever way it goes.
 */
export class HeldInstance {
  readonly id: InstanceId;
  /** How many of the pool were idle when it was acquired: it, and those that nobody held. */
  readonly idle: number;
  readonly #released: () => void;
  #work: Promise<unknown> | undefined;
  #isReleased = false;

  constructor({
    id,
    idle,
    released,
  }: {
    readonly id: InstanceId;
    readonly idle: number;
    readonly released: () => void;
  }) {
    this.id = id;
    this.idle = idle;
    this.#released = released;
  }

  /** Has a release wait until the work is over. */
  holdDuring(work: Promise<unknown>): void {
    this.#work = work;
  }

  /** May be repeated. */
  release(): void {
    if (this.#work) void this.#work.then(this.#releaseNow, this.#releaseNow);
    else this.#releaseNow();
  }

  readonly #releaseNow = (): void => {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#released();
  };
}

/** `over`: its time is. `gone`: its client is. `deleted`: its pool is, or is about to be. */
export type EndOfWaiting = 'over' | 'gone' | 'deleted' | 'stopping';

export interface ClaimQueueDeps {
  readonly clock: Clock;
  /** Acquires an idle instance of the pool. */
  readonly acquire: (poolUid: string) => HeldInstance | undefined;
}

const FIRST_PAUSE_MS = 25;
const LAST_PAUSE_MS = 250;

/**
 * The claims of this process that wait for an instance, by pool, in their order: what turns idle is
 * handed to the first who has none, at once. Whose turn it is over all replicas the admission says;
 * where it says no, the line pauses for a moment.
 */
export class ClaimQueue {
  readonly #deps: ClaimQueueDeps;
  readonly #lines = new Map<string, Line>();
  #stopping = false;

  constructor(deps: ClaimQueueDeps) {
    this.#deps = deps;
  }

  /** Whether claims are told to go elsewhere. */
  get stopping(): boolean {
    return this.#stopping;
  }

  /** Counts the claims that wait for the pool in this process. */
  waiting(poolUid: string): number {
    return this.#lines.get(poolUid)?.standing.size ?? 0;
  }

  /** Counts the claims that wait in this process. */
  get size(): number {
    let all = 0;
    for (const { standing } of this.#lines.values()) all += standing.size;
    return all;
  }

  /** The last place in this process; to be left. */
  enqueue(poolUid: string): QueueEntry {
    const line = this.#lines.get(poolUid) ?? {
      standing: new Set<Standing>(),
      pauseMs: 0,
      cancelPause: undefined,
    };
    this.#lines.set(poolUid, line);
    const standing: Standing = { hand: undefined };
    line.standing.add(standing);
    return {
      next: (until, signal) => this.#next(poolUid, standing, { until, signal }),
      pause: () => {
        this.#pause(poolUid);
      },
      leave: () => {
        line.standing.delete(standing);
        if (line.standing.size > 0 || this.#lines.get(poolUid) !== line) return;
        line.cancelPause?.();
        this.#lines.delete(poolUid);
      },
    };
  }

  /** One of the pool has turned idle: an end to any pause. */
  turnedIdle(poolUid: string): void {
    const line = this.#lines.get(poolUid);
    if (!line) return;
    line.pauseMs = 0;
    this.#resume(poolUid, line);
  }

  /** One of the pool may be had again. */
  offer(poolUid: string): void {
    const line = this.#lines.get(poolUid);
    if (!line || line.cancelPause) return;
    for (const { hand } of line.standing) {
      if (!hand) continue; // tries already
      const offer = this.#deps.acquire(poolUid);
      if (!offer) return;
      hand(offer);
    }
  }

  /** Ends the waiting for the pool. */
  end(poolUid: string, why: EndOfWaiting = 'deleted'): void {
    for (const { hand } of this.#lines.get(poolUid)?.standing ?? []) hand?.(why);
  }

  /** Ends all waiting, now and from now on. */
  stop(): void {
    this.#stopping = true;
    for (const poolUid of [...this.#lines.keys()]) this.end(poolUid, 'stopping');
  }

  async #next(
    poolUid: string,
    standing: Standing,
    { until, signal }: { readonly until: number; readonly signal: AbortSignal | undefined },
  ): Promise<HeldInstance | EndOfWaiting> {
    if (this.#stopping) return 'stopping';
    if (signal?.aborted) return 'gone';
    return await new Promise((resolve) => {
      const hand = (end: HeldInstance | EndOfWaiting): void => {
        standing.hand = undefined;
        cancel();
        signal?.removeEventListener('abort', gone);
        resolve(end);
      };
      const gone = (): void => {
        hand('gone');
      };
      const cancel = this.#deps.clock.at(until, () => {
        hand('over');
      });
      signal?.addEventListener('abort', gone);
      standing.hand = hand;
      this.offer(poolUid);
    });
  }

  #pause(poolUid: string): void {
    const line = this.#lines.get(poolUid);
    if (!line || line.cancelPause) return;
    const { clock } = this.#deps;
    line.pauseMs = Math.min(Math.max(2 * line.pauseMs, FIRST_PAUSE_MS), LAST_PAUSE_MS);
    line.cancelPause = clock.at(clock.now() + line.pauseMs, () => {
      this.#resume(poolUid, line);
    });
  }

  #resume(poolUid: string, line: Line): void {
    line.cancelPause?.();
    line.cancelPause = undefined;
    this.offer(poolUid);
  }
}

/** `hand`: while it has nothing to try. */
interface Standing {
  hand: ((end: HeldInstance | EndOfWaiting) => void) | undefined;
}
interface Line {
  readonly standing: Set<Standing>;
  pauseMs: number;
  cancelPause: (() => void) | undefined;
}

/**
 * The place of one claim, which calls `next` again where what it was handed was lost to another.
 */
export interface QueueEntry {
  readonly next: (
    until: number,
    signal: AbortSignal | undefined,
  ) => Promise<HeldInstance | EndOfWaiting>;
  /**
   * It was not its turn: nobody of the line tries for a moment, unless another turns idle. To be
   * called before the instance is released.
   */
  readonly pause: () => void;
  readonly leave: () => void;
}

/**
 * Which buckets are a replica's own, as replicas come and go. A hint and no more: the claim itself
 * decides who was first.
 */
export class OwnBuckets {
  readonly #replica: string;
  readonly #live: () => readonly string[];
  #of = '';
  #own: readonly number[] = ALL_BUCKETS;

  constructor(replica: string, live: () => readonly string[]) {
    this.#replica = replica;
    this.#live = live;
  }

  get(): readonly number[] {
    const live = this.#live();
    const of = live.join(' ');
    if (of === this.#of) return this.#own;
    this.#of = of;
    this.#own =
      live.length <= 1
        ? ALL_BUCKETS
        : ALL_BUCKETS.filter((bucket) => rendezvous(`bucket ${bucket}`, live) === this.#replica);
    return this.#own;
  }
}
