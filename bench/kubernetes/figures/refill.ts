import { apiCounts } from '../api-counts.ts';
import { calm, cpuMsWith, createPool, onACluster } from '../cluster.ts';
import { inPairs } from '../../figure.ts';
import type { Measure } from '../../measure.ts';

interface Filled {
  readonly tookMs: number;
  readonly cpuMs: number;
}

const COUNT = 1_000;
const POOL = 'bench';
/** As many requests as the product has in flight. */
const WIDTH = 16;

export const refill = onACluster(
  'refill',
  `a pool of ${COUNT} filled, against ${COUNT} raw creates of Pods on the same nodes`,
  async (cluster) => {
    const { bench, controlPlane, raw, namespace, startReplicas } = cluster;
    const {
      first: { service, pid },
    } = await startReplicas(1);
    await createPool(service, POOL, 0);
    const scale = (replicas: number) =>
      service.call(
        { method: 'PUT', path: `/sandboxpools/${POOL}`, body: JSON.stringify({ replicas }) },
        200,
      );
    const born = async (): Promise<number> =>
      (await apiCounts(controlPlane)).get('POST sandboxes') ?? 0;
    const over: number[] = [];
    const { ours, theirs } = await inPairs(bench, {
      ours: async () => {
        await calm(cluster);
        const before = await born();
        const [began, cpuMs] = [performance.now(), cpuMsWith(cluster, pid)];
        await scale(COUNT);
        await service.untilIdle(POOL, COUNT);
        const filled = {
          tookMs: performance.now() - began,
          cpuMs: cpuMsWith(cluster, pid) - cpuMs,
        };
        over.push((await born()) - before - COUNT);
        await scale(0);
        await service.untilNone(POOL);
        return filled;
      },
      theirs: async () => {
        await calm(cluster);
        const cpuMs = cpuMsWith(cluster, raw.pid);
        const { tookMs } = await raw.ask({ kind: 'fill', namespace, count: COUNT, width: WIDTH });
        const filled = { tookMs, cpuMs: cpuMsWith(cluster, raw.pid) - cpuMs };
        await raw.ask({ kind: 'empty', namespace, count: COUNT, width: WIDTH });
        return filled;
      },
    });
    const pair = (name: string, of: (filled: Filled) => number): Measure => ({
      name,
      unit: 'ms',
      better: 'less',
      ours: ours.map(of),
      theirs: theirs.map(of),
    });
    return [
      {
        ...pair(`a pool of ${COUNT} filled / ${COUNT} raw creates of Pods`, ({ tookMs }) => tookMs),
        reach: 1.25,
        beyond: 1.15,
      },
      pair("processor time of it, with the cluster's / the same", ({ cpuMs }) => cpuMs),
      { name: 'over-created', unit: '', better: 'less', ours: over, reach: 0 },
    ];
  },
);
