import type { LoadResult } from '../../load-protocol.ts';
import type { Measure } from '../../measure.ts';
import { cpuMsOf } from '../../process-facts.ts';
import { quantile } from '../../statistics.ts';
import { Bare } from '../bare.ts';
import { calm, createPool, onACluster } from '../cluster.ts';
import type { RawOrder } from '../raw-protocol.ts';

const PER_SECOND = 50;
/** A round: 10 s. */
const CLAIMS = 500;
const MODE = { kind: 'open', perSecond: PER_SECOND } as const;
const POOL = 'bench';

interface Sample { readonly p50: number; readonly p99: number; readonly cpuMs: number }

/** Latency and processor time of claims at a fixed rate, against one raw write of a record, one of a Pod, and a bare server. */
export const claim = onACluster('claim', `latency and processor time of claims at ${PER_SECOND}/s against raw writes and a bare server`, async (cluster) => {
  const { bench, raw, startReplicas } = cluster;
  const { first: { service, pid } } = await startReplicas(1);
  await raw.ask({ kind: 'make records', namespace: cluster.namespace, count: CLAIMS });
  await raw.ask({ kind: 'make pods', namespace: cluster.namespace, count: CLAIMS });
  const bare = await Bare.start(cluster, CLAIMS);
  await createPool(service, POOL, CLAIMS);
  const ours = async (): Promise<Sample> => {
    await service.untilIdle(POOL, CLAIMS);
    await calm(cluster);
    const before = cpuMsOf(pid);
    const result = await bench.load.open(service.port, service.claims(POOL, CLAIMS), PER_SECOND);
    const sample = sampleOf(result, cpuMsOf(pid) - before);
    await service.giveBack(result);
    return sample;
  };
  const rawly = async (by: Extract<RawOrder, { kind: 'claim' }>['by']): Promise<Sample> => {
    await calm(cluster);
    const sample = sampleOf(await raw.ask({ kind: 'claim', by, count: CLAIMS, mode: MODE }), 0);
    await raw.ask({ kind: 'give back' });
    return sample;
  };
  const barely = async (): Promise<Sample> => {
    await calm(cluster);
    const before = cpuMsOf(bare.pid);
    const result = await bench.load.open(bare.port, bare.asks(CLAIMS), PER_SECOND);
    const sample = sampleOf(result, cpuMsOf(bare.pid) - before);
    await bare.giveBack();
    return sample;
  };
  const sides = { ours, put: () => rawly('put'), patch: () => rawly('patch'), bare: barely };
  const samples: Record<keyof typeof sides, Sample[]> = { ours: [], put: [], patch: [], bare: [] };
  try {
    for (let round = 0; round <= bench.rounds; round += 1) {
      const names = ['ours', 'put', 'patch', 'bare'] as const;
      for (const name of round % 2 === 0 ? names : names.toReversed()) {
        const sample = await sides[name]();
        if (round > 0) samples[name].push(sample); // the first one warms up
      }
      bench.say(`round ${round}: p50 ${names.map((name) => `${name} ${samples[name].at(-1)?.p50.toFixed(2)}`).join(', ')}`);
    }
  } finally {
    await bare.stop();
  }
  const row = (name: string, other: keyof typeof sides, of: (sample: Sample) => number, marks: Partial<Measure>): Measure =>
    ({ name, unit: 'ms', better: 'less', ours: samples.ours.map(of), theirs: samples[other].map(of), ...marks });
  const [p50, p99, cpuMs] = [(sample: Sample) => sample.p50, (sample: Sample) => sample.p99, (sample: Sample) => sample.cpuMs];
  const at = `at ${PER_SECOND}/s`;
  return [
    row(`claim p50 ${at} / raw PUT of a record`, 'put', p50, { reach: 1.4, beyond: 1.2 }),
    row(`claim p99 ${at} / raw PUT of a record`, 'put', p99, { reach: 1.6, beyond: 1.3 }),
    row(`claim p50 ${at} / raw PATCH of a Pod`, 'patch', p50, { reach: 0.95, beyond: 0.8 }),
    row(`claim p99 ${at} / raw PATCH of a Pod`, 'patch', p99, { reach: 1.1, beyond: 0.9 }),
    row(`processor time of a claim ${at} / bare POST, EVALSHA, PUT`, 'bare', cpuMs, { reach: 2, beyond: 1.5 }),
    row(`claim p50 ${at} / bare POST, EVALSHA, PUT`, 'bare', p50, {}),
  ];
});

const sampleOf = ({ latencies }: Pick<LoadResult, 'latencies'>, cpuMs: number): Sample =>
  ({ p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99), cpuMs: cpuMs / latencies.length });
