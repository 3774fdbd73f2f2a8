import type { Daemon } from '../daemon.ts';
import { inPairs, type Figure } from '../figure.ts';
import { expectAll } from '../load.ts';
import type { LoadResult } from '../load-protocol.ts';
import type { Measure } from '../measure.ts';
import { cpuMsOf } from '../process-facts.ts';
import type { Service } from '../service.ts';
import { quantile } from '../statistics.ts';
import { withFleet } from './a-fleet.ts';

const POOL = 'bench';
const CLAIMS = 200;
const WARM_UP = 5;
/** 10,000 calls a minute. */
const CALLS_PER_SECOND = 10_000 / 60;
const CALLS = 3_000;

interface Sample {
  readonly p50: number;
  readonly p99: number;
  readonly cpuMs: number;
}

/** How a service names the worker's pool. */
interface Side {
  readonly service: Service;
  readonly pool: string;
}

export const claims: Figure = {
  name: 'fleet:claim',
  about:
    'latency of a claim on another cluster through a manager, against the worker asked directly',
  run: async (bench) =>
    await withFleet(bench, async ({ manager, worker }) => {
      const routed: Side = { service: manager.service, pool: `west::${POOL}` };
      const direct: Side = { service: worker.service, pool: POOL };
      await worker.service.createFullPool(POOL, CLAIMS);
      const side = (of: Side) => async (): Promise<Sample> => {
        const before = cpuOf(manager, worker);
        const result = await bench.load.closed(
          of.service.port,
          of.service.claims(of.pool, CLAIMS),
          1,
        );
        const cpuMs = (cpuOf(manager, worker) - before) / CLAIMS;
        await of.service.giveBack(result);
        await worker.service.untilIdle(POOL, CLAIMS);
        await worker.calm();
        await manager.calm();
        return { ...sampleOf(result), cpuMs };
      };
      for (let turn = 0; turn < WARM_UP; turn += 1) {
        await side(routed)();
        await side(direct)();
      }
      const found = await inPairs(bench, { ours: side(routed), theirs: side(direct) });
      return [
        {
          ...rowOf('claim through a manager / direct, p50', found, 'p50'),
          reach: 1.5,
          beyond: 1.2,
        },
        rowOf('claim through a manager / direct, p99', found, 'p99'),
        rowOf('claim through a manager / direct, processor time of both', found, 'cpuMs'),
      ];
    }),
};

export const calls: Figure = {
  name: 'fleet:calls',
  about: '10,000 calls a minute over one link, against the same to the worker directly',
  run: async (bench) =>
    await withFleet(bench, async ({ manager, worker }) => {
      await worker.service.createFullPool(POOL, 1);
      const id = await worker.service.claim(POOL);
      const side = (service: Service, name: string, count: number) => async (): Promise<Sample> => {
        const [ask] = service.keyed([{ method: 'GET', path: `/sandboxes/${name}` }]);
        if (!ask) throw new Error('there is nothing to ask');
        const before = cpuOf(manager, worker);
        const result = await bench.load.open(
          service.port,
          Array.from({ length: count }, () => ask),
          CALLS_PER_SECOND,
        );
        expectAll(result, 200);
        return { ...sampleOf(result), cpuMs: (cpuOf(manager, worker) - before) / count };
      };
      const routed = (count: number) => side(manager.service, `west.${id}`, count);
      const direct = (count: number) => side(worker.service, id, count);
      await routed(CALLS / 3)();
      await direct(CALLS / 3)();
      const found = await inPairs(bench, { ours: routed(CALLS), theirs: direct(CALLS) });
      return [
        {
          ...rowOf('10,000 calls a minute over one link / direct, p99', found, 'p99'),
          reach: 3,
          beyond: 1.5,
        },
        rowOf('10,000 calls a minute over one link / direct, p50', found, 'p50'),
        rowOf('10,000 calls a minute, processor time of both', found, 'cpuMs'),
      ];
    }),
};

const cpuOf = (...daemons: readonly Daemon[]): number =>
  daemons.reduce((sum, { pid }) => sum + cpuMsOf(pid), 0);

const sampleOf = ({ latencies }: LoadResult): Pick<Sample, 'p50' | 'p99'> => ({
  p50: quantile(latencies, 0.5),
  p99: quantile(latencies, 0.99),
});

const rowOf = (
  name: string,
  { ours, theirs }: { readonly ours: readonly Sample[]; readonly theirs: readonly Sample[] },
  of: keyof Sample,
): Measure => ({
  name,
  unit: 'ms',
  better: 'less',
  ours: ours.map((sample) => sample[of]),
  theirs: theirs.map((sample) => sample[of]),
});
