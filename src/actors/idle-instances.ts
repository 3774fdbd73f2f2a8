import type { Clock } from '../contracts/clock.ts';
import type { Log } from '../contracts/log.ts';
import type { SandboxDriver } from '../contracts/sandbox-driver.ts';
import { unavailable } from '../model/refusals.ts';
import type { InstanceFact } from '../model/sandbox.ts';
import type { SandboxIndex } from './sandbox-index.ts';
import type { Waiters } from './waiters.ts';
import { WaitingLines, type Offer } from './waiting-lines.ts';

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

/** The idle instances of all pools, as claims take them: each reserved in this process until it moves or is put back. */
export class IdleInstances {
  /** The claims that wait for one. */
  readonly lines: WaitingLines;
  readonly #deps: IdleInstancesDeps;

  constructor(deps: IdleInstancesDeps) {
    this.#deps = deps;
    this.lines = new WaitingLines({ clock: deps.clock, take: (poolUid) => this.take(poolUid) });
  }

  /** The longest idle instance of the pool, of its revision before others. */
  take(poolUid: string): Offer | undefined {
    const { index, revisionOf, ownBuckets } = this.#deps;
    const id = index.takeIdle(poolUid, revisionOf(poolUid), ownBuckets());
    return id === undefined ? undefined : { id, idle: index.idleIn(poolUid) + 1 };
  }

  /** The same, after an uncached look at what the mirror may not show yet. Refuses with `unavailable` where the truth is out of reach. */
  async find(poolUid: string, namespace: string): Promise<Offer | undefined> {
    if (!await this.look(poolUid, namespace)) throw unavailable('whether an instance is idle can not be told now; try again');
    return this.take(poolUid);
  }

  /** Looks uncached: what is idle, and not shown so yet, turns idle here. Never rejects; false where the truth is out of reach. */
  async look(poolUid: string, namespace: string): Promise<boolean> {
    const { driver, log, learn } = this.#deps;
    try {
      for (const fact of await driver.idle(poolUid, namespace)) learn(fact);
      return true;
    } catch (error) {
      log.warn({ poolUid, error }, 'idle instances could not be looked for');
      return false;
    }
  }

  putBack(id: string): void {
    const { index, waiters, freed } = this.#deps;
    const poolUid = index.poolOf(id);
    index.putBack(id);
    waiters.changed(id);
    if (poolUid === undefined) return;
    freed(poolUid);
    this.lines.offer(poolUid);
  }

  /** Waits until one of the pool's that claims of this process hold is back or gone; false, at once, where there is none. */
  async untilPutBack(poolUid: string, until: number): Promise<boolean> {
    const { index, waiters } = this.#deps;
    const id = index.takenOf(poolUid);
    if (id === undefined) return false;
    await waiters.until(id, () => !index.isTaken(id), until);
    return true;
  }
}
