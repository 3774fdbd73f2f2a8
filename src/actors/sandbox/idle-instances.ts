import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import type { SandboxDriver } from '../../contracts/sandbox-driver.ts';
import { unavailable } from '../../model/refusals.ts';
import type { InstanceFact } from '../../model/sandbox.ts';
import { HeldInstance } from './held-instance.ts';
import type { SandboxIndex } from './sandbox-index.ts';
import type { Waiters } from './waiters.ts';
import { ClaimQueue } from './claim-queue.ts';

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
      release: () => {
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
      throw unavailable('whether an instance is idle can not be told now; try again');
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
      log.warn({ poolUid, error }, 'idle instances could not be looked for');
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
