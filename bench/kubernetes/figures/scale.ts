import type { Bench, Figure } from '../../figure.ts';
import { expectAll } from '../../load.ts';
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
import { aProbe, type Probe } from '../probed.ts';

const [FEW, MANY] = [1_000, 20_000];
const MOST_OF_A_POOL = 10_000;
const PER_SECOND = 50;
const CLAIMS = 100;
const WARM_UP = 200;
/** Pairs of so many claims, a round. */
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
  const heap = { few: (await few.probe.report()).heap, many: (await many.probe.report()).heap };
  const perInstance = (heap.many - heap.few) / (MANY - FEW) / 1_024;
  for (const { first } of [few, many])
    expectAll(
      await bench.load.open(
        first.service.port,
        first.service.claims('bench-0', WARM_UP),
        PER_SECOND,
      ),
      201,
    );
  const samples: { few: Sample[]; many: Sample[] } = { few: [], many: [] };
  for (let n = 0; n < bench.rounds * SLICES; n += 1) {
    for (const side of n % 2 === 0 ? (['few', 'many'] as const) : (['many', 'few'] as const))
      samples[side].push(await claims(bench, side === 'few' ? few : many));
  }
  const starts = await startsOf(bench, many);
  const pair = (name: string, of: (sample: Sample) => number): Measure => ({
    name,
    unit: 'ms',
    better: 'less',
    ours: samples.many.map(of),
    theirs: samples.few.map(of),
    reach: 1.1,
    beyond: 1.03,
  });
  return [
    pair(`claim p50 with ${MANY} idle / with ${FEW}`, ({ p50 }) => p50),
    pair(`processor time of a claim with ${MANY} idle / with ${FEW}`, ({ cpuMs }) => cpuMs),
    {
      name: 'memory of a replica per idle instance',
      unit: 'KB',
      better: 'less',
      ours: [perInstance],
      reach: 6,
      beyond: 5,
    },
    ...starts,
  ];
};

interface Sample {
  readonly p50: number;
  readonly cpuMs: number;
}

const claims = async (bench: Bench, { first: { service, replica } }: Side): Promise<Sample> => {
  const pid = replica.pid ?? 0;
  const before = cpuMsOf(pid);
  const result = await bench.load.open(service.port, service.claims('bench-0', CLAIMS), PER_SECOND);
  const cpuMs = (cpuMsOf(pid) - before) / CLAIMS;
  expectAll(result, 201);
  return { p50: median(result.latencies), cpuMs };
};

/**
 * From the start of the process until it is ready, against one list of both kinds; stalls from the
 * first list on.
 */
const startsOf = async (
  bench: Bench,
  { cluster, first: { replica }, probe }: Side,
): Promise<readonly Measure[]> => {
  const [ours, theirs, stalls]: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round < bench.rounds; round += 1) {
    await replica.stop();
    await calm(cluster);
    theirs.push((await cluster.raw.ask({ kind: 'list' })).tookMs);
    await calm(cluster);
    const began = performance.now();
    await replica.start();
    ours.push(performance.now() - began);
    const report = await probe.report();
    bench.say(
      `start ${ours.at(-1)?.toFixed(0)} ms, list ${theirs.at(-1)?.toFixed(0)} ms, stalls ${report.stalls.map(({ at, ms }) => `${ms.toFixed(0)} at ${at.toFixed(0)}`).join(', ')}`,
    );
    stalls.push(Math.max(0, ...report.stalls.map(({ ms }) => ms)));
  }
  return [
    {
      name: `start with ${MANY} instances / a raw list of both kinds`,
      unit: 'ms',
      better: 'less',
      ours,
      theirs,
      reach: 1.5,
      beyond: 1.2,
    },
    {
      name: 'longest loop stall meanwhile',
      unit: 'ms',
      better: 'less',
      ours: stalls,
      reach: 50,
      beyond: 20,
    },
  ];
};

/** A replica with so many idle instances, which were made while it did not run. */
const filled = async (cluster: BenchCluster, count: number): Promise<Side> => {
  const { controlPlane, raw } = cluster;
  const probe = aProbe();
  const started = await cluster.startReplicas(1, probe.env);
  const {
    first: { service, replica },
    tenantNamespace,
  } = started;
  const sizes = Array.from({ length: Math.ceil(count / MOST_OF_A_POOL) }, () =>
    Math.min(count, MOST_OF_A_POOL),
  );
  for (const [n] of sizes.entries()) await createPool(service, `bench-${n}`, 0);
  await replica.stop();
  for (const [n, size] of sizes.entries()) {
    const pool = JSON.parse(
      await controlPlane.kubectl(
        'get',
        'sandboxpool',
        `bench-${n}`,
        '-n',
        tenantNamespace,
        '-o',
        'json',
      ),
    ) as unknown;
    await raw.ask({
      kind: 'make idle',
      adminKubeconfig: controlPlane.kubeconfig('admin'),
      pool,
      count: size,
      etcdUrl: controlPlane.etcd,
    });
    await controlPlane.kubectl(
      'patch',
      'sandboxpool',
      `bench-${n}`,
      '-n',
      tenantNamespace,
      '--type=merge',
      '-p',
      JSON.stringify({ spec: { replicas: size } }),
    );
    cluster.bench.say(`${size} idle instances are made`);
  }
  await replica.start();
  for (const [n, size] of sizes.entries()) await untilIdleOnAll([service], `bench-${n}`, size);
  return { ...started, cluster, probe };
};
