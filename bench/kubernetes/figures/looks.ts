import {
  createPool,
  onACluster,
  TEMPLATE,
  untilIdleOnAll,
  type BenchCluster,
  type BenchReplicas,
} from '../cluster.ts';
import { pause } from '../../process-facts.ts';
import { aPodTemplate } from '../../../local-cluster/replicas.ts';

const POOL = 'bench';
const CYCLES = 30;
const GRACE = '5s';
/** Longer than a Pod takes to end, and until what outlives its end is looked at. */
const ENDED_MS = 15_000;
/** Of each Pod's first container: kwok ends it 4 s after it is told to. */
const LATE = { containers: [{ name: 'main', image: 'late', command: ['sleep', 'infinity'] }] };
const READ = /^sandpool_store_seconds_count\{[^}]*operation="GET (pods|sandboxes)"[^}]*\} (\d+)/gm;

/** The replicas' own counts: the reads of objects, not the lists that their mirrors begin with. */
export const readsOf = async ({ replicas }: BenchReplicas): Promise<number> => {
  const texts = await Promise.all(
    replicas.list.map(async ({ metricsAddress }) => (await fetch(metricsAddress)).text()),
  );
  return texts
    .flatMap((text) => [...text.matchAll(READ)])
    .reduce((sum, [, , count]) => sum + Number(count), 0);
};

const readsACycle = async (
  { bench, startReplicas }: BenchCluster,
  count: number,
): Promise<number> => {
  const started = await startReplicas(count, { SANDPOOL_KUBERNETES_TERMINATION_GRACE: GRACE });
  const {
    services,
    first: { service },
  } = started;
  await createPool(service, POOL, CYCLES);
  await untilIdleOnAll(services, POOL, CYCLES);
  await pause(ENDED_MS);
  const before = await readsOf(started);
  const claimed = await bench.load.closed(service.port, service.claims(POOL, CYCLES), 1);
  await service.giveBack(claimed);
  await pause(ENDED_MS);
  await untilIdleOnAll(services, POOL, CYCLES);
  const reads = ((await readsOf(started)) - before) / CYCLES;
  bench.say(`${count} replicas: ${reads.toFixed(2)} uncached reads a cycle`);
  return reads;
};

const looks = (count: number, reach: number) =>
  onACluster(
    `looks-${count}`,
    `uncached reads of ${count} replicas for each sandbox that ends within its grace`,
    async (cluster) => {
      await cluster.controlPlane.apply([aPodTemplate(TEMPLATE, LATE)]);
      return [
        {
          name: `uncached reads a cycle, ${count} replicas, grace ${GRACE}`,
          unit: '',
          better: 'less',
          ours: [await readsACycle(cluster, count)],
          reach,
          beyond: 2,
        },
      ];
    },
  );

export const looksOfThree = looks(3, 4);
export const looksOfTen = looks(10, 6);
