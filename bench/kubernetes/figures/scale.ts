import { asMergePatch } from '../../../local-cluster/control-plane/cluster.ts';
import { inPairs, type Bench, type Figure } from '../../figure.ts';
import { costOf, type Cost } from '../../load.ts';
import { rowOf, type Measure } from '../../measure.ts';
import { aProbe, type Probe } from '../../probed.ts';
import {
  calm,
  createPool,
  startCluster,
  type BenchCluster,
  type BenchReplicas,
} from '../cluster.ts';
import { copyIdle } from '../idle-instances.ts';

const [FEW, MANY] = [1_000, 20_000];
const MOST_OF_A_POOL = 10_000;
const PER_SECOND = 50;
const CLAIMS = 100;
const WARM_UP = 2;
/** Pairs of claims, per round. */
const SLICES = 2;

interface Side extends BenchReplicas {
  readonly cluster: BenchCluster;
  readonly probe: Probe;
}

export const scale: Figure = {
  name: 'scale',
  about: `claims, memory and start with ${MANY} idle instances against ${FEW}, on a cluster each`,
  run: async (bench) => {
    const few = await startCluster(bench);
    const many = await startCluster(bench);
    try {
      return await measure(bench, await filled(few, FEW), await filled(many, MANY));
    } finally {
      await Promise.all([few.end(), many.end()]);
    }
  },
};

const measure = async (bench: Bench, few: Side, many: Side): Promise<readonly Measure[]> => {
  const bytes = ((await many.probe.heap()) - (await few.probe.heap())) / (MANY - FEW);
  const claims = (side: Side) => (): Promise<Cost> => {
    const { service, replica } = side.first;
    return costOf([replica.pid ?? 0], 201, () =>
      bench.load.open(service.port, service.claims('bench-0', CLAIMS), PER_SECOND),
    );
  };
  const sides = { ours: claims(many), theirs: claims(few) };
  const pairs = await inPairs({ rounds: bench.rounds * SLICES }, sides, WARM_UP);
  const starts = await inPairs(bench, { ours: () => startMs(many), theirs: () => listMs(many) });
  const beside = `with ${MANY} idle / with ${FEW}`;
  const marks = { reach: 1.1, beyond: 1.03 };
  return [
    rowOf({ name: `claim p50 ${beside}`, ...marks }, pairs, ({ p50 }) => p50),
    rowOf({ name: `processor time of it ${beside}`, ...marks }, pairs, ({ cpuMs }) => cpuMs),
    rowOf(
      { name: 'memory of a replica per idle instance', unit: 'KB', reach: 6, beyond: 5 },
      { ours: [bytes / 1_024] },
      (kb) => kb,
    ),
    rowOf(
      { name: `start with ${MANY} instances / a raw list of both kinds`, reach: 1.5, beyond: 1.2 },
      starts,
      (ms) => ms,
    ),
  ];
};

const startMs = async ({ cluster, first: { replica } }: Side): Promise<number> => {
  await replica.stop();
  await calm(cluster);
  const began = performance.now();
  await replica.start();
  return performance.now() - began;
};

/** While no replica runs. */
const listMs = async ({
  cluster,
  first: { replica },
  tenantNamespace: namespace,
}: Side): Promise<number> => {
  await replica.stop();
  await calm(cluster);
  const kubeconfig = cluster.controlPlane.kubeconfig('sandpool');
  const [tookMs = Number.NaN] = await cluster.raw.ask({ kind: 'list', kubeconfig, namespace });
  await replica.start();
  return tookMs;
};

const filled = async (cluster: BenchCluster, count: number): Promise<Side> => {
  const { controlPlane, bench } = cluster;
  const probe = aProbe(bench);
  const started = await cluster.startReplicas(1, probe.env);
  const { service, replica } = started.first;
  const namespace = started.tenantNamespace;
  const size = Math.min(count, MOST_OF_A_POOL);
  const pools = Array.from({ length: count / size }, (_, n) => `bench-${n}`);
  for (const pool of pools) await createPool(service, pool, 1);
  for (const pool of pools) await service.untilIdle(pool, 1);
  await replica.stop();
  await copyIdle(controlPlane, { pools, namespace, count: size });
  bench.say(`${count} idle instances are made`);
  for (const pool of pools) {
    const change = asMergePatch({ spec: { replicas: size } });
    await controlPlane.kubectl('patch', 'sandboxpool', pool, '-n', namespace, ...change);
  }
  await replica.start();
  for (const pool of pools) await service.untilIdle(pool, size);
  return { ...started, cluster, probe };
};
