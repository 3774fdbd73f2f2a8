import { apiCounts } from '../api-counts.ts';
import { calm, createPool, onACluster } from '../cluster.ts';
import { inPairs } from '../../figure.ts';

const COUNT = 1_000;
const POOL = 'bench';
/** As many requests as the product has in flight. */
const WIDTH = 16;

export const refill = onACluster('refill', `a pool of ${COUNT} filled, against ${COUNT} raw creates of Pods on the same nodes`, async (cluster) => {
  const { bench, controlPlane, raw, namespace, startReplicas } = cluster;
  const { first: { service } } = await startReplicas(1);
  await createPool(service, POOL, 0);
  const scale = (replicas: number) => service.call({ method: 'PUT', path: `/sandboxpools/${POOL}`, body: JSON.stringify({ replicas }) }, 200);
  const born = async (): Promise<number> => (await apiCounts(controlPlane)).get('POST sandboxes') ?? 0;
  const over: number[] = [];
  const { ours, theirs } = await inPairs(bench, {
    ours: async () => {
      await calm(cluster);
      const before = await born();
      const began = performance.now();
      await scale(COUNT);
      await service.untilIdle(POOL, COUNT);
      const tookMs = performance.now() - began;
      over.push(await born() - before - COUNT);
      await scale(0);
      await service.untilNone(POOL);
      return tookMs;
    },
    theirs: async () => {
      await calm(cluster);
      const { tookMs } = await raw.ask({ kind: 'fill', namespace, count: COUNT, width: WIDTH });
      await controlPlane.kubectl('delete', 'pods', '--all', '-n', namespace, '--grace-period=0', '--force', '--wait=true', '--timeout=50s');
      return tookMs;
    },
  });
  return [
    { name: `a pool of ${COUNT} filled / ${COUNT} raw creates of Pods`, unit: 'ms', better: 'less', ours, theirs, reach: 1.25, beyond: 1.15 },
    { name: 'over-created', unit: '', better: 'less', ours: over, reach: 0 },
  ];
});
