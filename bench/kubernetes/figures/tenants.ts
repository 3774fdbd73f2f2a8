import type { Bench, Figure } from '../../figure.ts';
import type { Ask } from '../../kept-connection.ts';
import { expectAll } from '../../load.ts';
import { claimsBy, makeKeys } from '../../many-keys.ts';
import type { Measure } from '../../measure.ts';
import { cpuMsOf } from '../../process-facts.ts';
import { median } from '../../statistics.ts';
import {
  calm,
  createPool,
  startCluster,
  untilIdleOnAll,
  type BenchCluster,
  type BenchReplicas,
} from '../cluster.ts';

const KEYS = 1_000;
const POOLS = 200;
/** In all, on either side. */
const IDLE = 400;
const PER_SECOND = 50;
const CLAIMS = 100;

interface Side extends BenchReplicas {
  readonly cluster: BenchCluster;
  readonly pools: readonly string[];
  readonly claims: (from: number) => readonly Ask[];
}
interface Sample {
  readonly p50: number;
  readonly cpuMs: number;
}

export const tenants: Figure = {
  name: 'tenants',
  about: `claims with ${KEYS} keys and ${POOLS} pools against one of each, ${IDLE} idle on either side, on a cluster each`,
  run: async (bench) => {
    const [many, one] = [await startCluster(bench), await startCluster(bench)];
    try {
      return await measure(
        bench,
        await filled(bench, many, { keys: KEYS, pools: POOLS }),
        await filled(bench, one, { keys: 1, pools: 1 }),
      );
    } finally {
      await Promise.all([many.end(), one.end()]);
    }
  },
};

const measure = async (bench: Bench, many: Side, one: Side): Promise<readonly Measure[]> => {
  const samples: { many: Sample[]; one: Sample[] } = { many: [], one: [] };
  for (let n = 0; n <= bench.rounds; n += 1) {
    // the first one warms up
    for (const side of n % 2 === 0 ? (['many', 'one'] as const) : (['one', 'many'] as const))
      samples[side].push(await claimsOf(bench, side === 'many' ? many : one, n * CLAIMS));
  }
  const pair = (name: string, of: (sample: Sample) => number): Measure => ({
    name,
    unit: 'ms',
    better: 'less',
    ours: samples.many.slice(1).map(of),
    theirs: samples.one.slice(1).map(of),
    reach: 1.1,
    beyond: 1.03,
  });
  const which = `with ${KEYS} keys and ${POOLS} pools / with one of each`;
  return [
    pair(`claim p50 ${which}`, ({ p50 }) => p50),
    pair(`processor time of a claim ${which}`, ({ cpuMs }) => cpuMs),
  ];
};

const claimsOf = async (
  bench: Bench,
  { cluster, claims, pools, services, first: { service, pid } }: Side,
  from: number,
): Promise<Sample> => {
  const before = cpuMsOf(pid);
  const result = await bench.load.open(service.port, claims(from), PER_SECOND);
  const cpuMs = (cpuMsOf(pid) - before) / CLAIMS;
  expectAll(result, 201);
  await service.giveBack(result);
  for (const pool of pools) await untilIdleOnAll(services, pool, IDLE / pools.length);
  await calm(cluster);
  return { p50: median(result.latencies), cpuMs };
};

const filled = async (
  bench: Bench,
  cluster: BenchCluster,
  count: { readonly keys: number; readonly pools: number },
): Promise<Side> => {
  const started = await cluster.startReplicas(1);
  const {
    first: { service },
    tenantKey,
  } = started;
  const pools = Array.from({ length: count.pools }, (_, n) => `bench-${n}`);
  for (const pool of pools) await createPool(service, pool, IDLE / pools.length);
  const keys = [tenantKey, ...(await makeKeys(bench.load, service, count.keys - 1))];
  for (const pool of pools) await untilIdleOnAll([service], pool, IDLE / pools.length);
  bench.say(`${keys.length} keys and ${pools.length} pools are there`);
  return {
    ...started,
    cluster,
    pools,
    claims: (from) => claimsBy(keys, pools, { from, count: CLAIMS }),
  };
};
