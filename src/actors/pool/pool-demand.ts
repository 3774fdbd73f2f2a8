import type { Clock } from '../../contracts/clock.ts';
import type { Coordination } from '../../contracts/coordination.ts';
import type { DemandSignal } from '../../contracts/coordination/signals.ts';
import type { WaitedPool } from '../../contracts/coordination/claims.ts';
import type { Log } from '../../contracts/log.ts';

export interface PoolDemandDeps {
  readonly coordination: Pick<Coordination, 'publishDemand' | 'subscribeDemand' | 'waiting'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly lacking: (poolUid: string) => void;
}

const MOST_POOLS = 10_000;
const MOST_PRINCIPALS = 1_000;
const TOLD_AGAIN_MS = 1_000;

/** By this replica's clock. */
interface Demand {
  cameAt: number;
  waitsAt: number | undefined;
  waiting: number;
  readonly refused: Map<string, number>;
}

/** Replicas publish it to each other, so that every leader has it. */
export class PoolDemand {
  readonly #deps: PoolDemandDeps;
  readonly #pools = new Map<string, Demand>();
  #forget: (() => void) | undefined;

  constructor(deps: PoolDemandDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#forget ??= this.#deps.coordination.subscribeDemand((word) => {
      this.#hear(word);
    });
  }

  stop(): void {
    this.#forget?.();
  }

  waits(poolUid: string, principal: string): void {
    this.#deps.coordination.publishDemand({ kind: 'waits', poolUid, principal });
  }

  refused(poolUid: string, principal: string): void {
    const before = this.#pools.get(poolUid)?.refused.get(principal);
    if (before !== undefined && this.#deps.clock.now() - before < TOLD_AGAIN_MS) return;
    this.#deps.coordination.publishDemand({ kind: 'refused', poolUid, principal });
  }

  /** Only publishes if this ends a known refusal. */
  served(poolUid: string, principal: string): void {
    if (this.#pools.get(poolUid)?.refused.has(principal))
      this.#deps.coordination.publishDemand({ kind: 'served', poolUid, principal });
  }

  came(poolUid: string): void {
    this.#of(poolUid).cameAt = this.#deps.clock.now();
  }

  /** Ms since the epoch; 0 if unknown. */
  cameAt(poolUid: string): number {
    return this.#pools.get(poolUid)?.cameAt ?? 0;
  }

  /**
   * Updates the waiting claims of pools with a wait signal. Keeps the old number on an error; never
   * rejects.
   */
  async look(pools: readonly WaitedPool[]): Promise<void> {
    await Promise.all(
      pools.map(async (pool) => {
        const demand = this.#pools.get(pool.uid);
        const waitsAt = demand?.waitsAt;
        if (!demand || waitsAt === undefined) return;
        try {
          demand.waiting = await this.#deps.coordination.waiting({
            uid: pool.uid,
            owner: pool.owner,
          });
          if (demand.waiting === 0 && demand.waitsAt === waitsAt) demand.waitsAt = undefined;
        } catch (error) {
          this.#deps.log.debug({ poolUid: pool.uid, error: String(error) }, 'demand-not-published');
        }
      }),
    );
  }

  /**
   * Claims that waited at the last `look`, plus principals refused within the window and not served
   * since.
   */
  pending(poolUid: string, windowMs: number): number {
    const demand = this.#pools.get(poolUid);
    if (!demand) return 0;
    const since = this.#deps.clock.now() - windowMs;
    let refused = 0;
    for (const at of demand.refused.values()) if (at > since) refused += 1;
    return demand.waiting + refused;
  }

  waiting(poolUid: string): number {
    return this.#pools.get(poolUid)?.waiting ?? 0;
  }

  #hear({ kind, poolUid, principal }: DemandSignal): void {
    const demand = this.#of(poolUid);
    const now = this.#deps.clock.now();
    if (kind === 'served') {
      demand.refused.delete(principal);
      return;
    }
    demand.cameAt = now;
    if (kind === 'waits') {
      demand.waitsAt = now;
    } else {
      demand.refused.delete(principal); // keeps the newest last
      demand.refused.set(principal, now);
      dropFirst(demand.refused, MOST_PRINCIPALS);
    }
    this.#deps.lacking(poolUid);
  }

  #of(poolUid: string): Demand {
    const demand = this.#pools.get(poolUid) ?? {
      cameAt: 0,
      waitsAt: undefined,
      waiting: 0,
      refused: new Map<string, number>(),
    };
    this.#pools.delete(poolUid);
    this.#pools.set(poolUid, demand);
    dropFirst(this.#pools, MOST_POOLS);
    return demand;
  }
}

const dropFirst = (map: Map<string, unknown>, most: number): void => {
  for (const key of map.keys()) {
    if (map.size <= most) return;
    map.delete(key);
  }
};
