import type { Sample } from '../../contracts/metrics.ts';
import { POOL_PHASES, NO_INSTANCES, type PoolCounts } from '../../model/pools/pool.ts';
import type { PoolHost } from './pool-host.ts';
import type { PoolSnapshot } from './pool-snapshot.ts';

const MOST_POOLS = 50;
/** Not a valid namespace or pool name. */
const OTHERS = '(others)';
const SHOWN = ['idle', 'starting', 'running'] as const;
const STATES = Object.keys(NO_INSTANCES) as readonly (keyof PoolCounts)[];

interface Counted {
  readonly namespace: string;
  readonly pool: string;
  readonly replicas: number;
  readonly counts: PoolCounts;
}

/** All metrics of one turn of the event loop share one scan, which takes microseconds per pool. */
export class PoolStats {
  readonly #pools: PoolHost;
  #taken: readonly PoolSnapshot[] | undefined;

  constructor(pools: PoolHost) {
    this.#pools = pools;
  }

  phases(): Iterable<Sample<'sandpool_pools'>> {
    const all = this.#take();
    return POOL_PHASES.map((phase) => ({
      labels: { phase },
      value: all.filter((pool) => pool.phase === phase).length,
    }));
  }

  withoutIdle(): number {
    return this.#take().filter(
      ({ record, counts }) => record.deleting === false && record.replicas > 0 && counts.idle === 0,
    ).length;
  }

  instances(): Iterable<Sample<'sandpool_instances'>> {
    const all = sumOf(this.#take().map(({ counts }) => counts));
    return STATES.map((state) => ({ labels: { state }, value: all[state] }));
  }

  byPool(): Iterable<Sample<'sandpool_pool_instances'>> {
    return this.#largest().flatMap(({ namespace, pool, counts }) =>
      SHOWN.map((state) => ({
        labels: { pool_namespace: namespace, pool, state },
        value: counts[state],
      })),
    );
  }

  replicas(): Iterable<Sample<'sandpool_pool_replicas'>> {
    return this.#largest().map(({ namespace, pool, replicas }) => ({
      labels: { pool_namespace: namespace, pool },
      value: replicas,
    }));
  }

  #largest(): readonly Counted[] {
    const all = [...this.#take()].sort(
      (a, b) => b.record.replicas - a.record.replicas || (a.record.uid < b.record.uid ? -1 : 1),
    );
    const shown = all.slice(0, MOST_POOLS).map(({ record: { name, owner, replicas }, counts }) => ({
      namespace: owner.namespace,
      pool: name,
      replicas,
      counts,
    }));
    const others = all.slice(MOST_POOLS);
    if (others.length === 0) return shown;
    const replicas = others.reduce((sum, { record }) => sum + record.replicas, 0);
    return [
      ...shown,
      {
        namespace: OTHERS,
        pool: OTHERS,
        replicas,
        counts: sumOf(others.map(({ counts }) => counts)),
      },
    ];
  }

  #take(): readonly PoolSnapshot[] {
    if (!this.#taken) {
      this.#taken = this.#pools.snapshots();
      setImmediate(() => {
        this.#taken = undefined;
      });
    }
    return this.#taken;
  }
}

const sumOf = (all: readonly PoolCounts[]): PoolCounts => {
  const sum: { -readonly [State in keyof PoolCounts]: number } = { ...NO_INSTANCES };
  for (const counts of all) for (const state of STATES) sum[state] += counts[state];
  return sum;
};
