import type { LoadResult } from '../../load-protocol.ts';
import type { Measure } from '../../measure.ts';
import { expectAll } from '../../load.ts';
import { cpuMsOf } from '../../process-facts.ts';
import { quantile } from '../../statistics.ts';
import { Bare } from '../bare.ts';
import { calm, createPool, onACluster } from '../cluster.ts';

const PER_SECOND = 50;
/** A round: every side in turn, so many times, each for 2 s. The pool is full again before the next. */
const SLICES = 5;
const SLICE = 100;
const MODE = { kind: 'open', perSecond: PER_SECOND } as const;
const POOL = 'bench';

/** One slice, or the slices of a round. */
interface Part { readonly latencies: readonly number[]; readonly cpuMs: number }

/** Latency and processor time of claims at a fixed rate, against one raw write of a record, one of a Pod, and a bare server. */
export const claim = onACluster('claim', `latency and processor time of claims at ${PER_SECOND}/s against raw writes and a bare server`, async (cluster) => {
  const { bench, raw, startReplicas } = cluster;
  const { first: { service, pid } } = await startReplicas(1);
  await raw.ask({ kind: 'make records', namespace: cluster.namespace, count: SLICES * SLICE });
  await raw.ask({ kind: 'make pods', namespace: cluster.namespace, count: SLICES * SLICE });
  const bare = await Bare.start(cluster, SLICES * SLICE);
  await createPool(service, POOL, SLICES * SLICE);
  let claimed: LoadResult[] = [];
  const measured = async (of: number, run: () => Promise<LoadResult>): Promise<Part & { readonly result: LoadResult }> => {
    const before = cpuMsOf(of);
    const result = await run();
    expectAll(result, 201);
    return { result, latencies: result.latencies, cpuMs: cpuMsOf(of) - before };
  };
  const sides: Readonly<Record<Side, () => Promise<Part>>> = {
    ours: async () => {
      const part = await measured(pid, () => bench.load.open(service.port, service.claims(POOL, SLICE), PER_SECOND));
      claimed.push(part.result);
      return part;
    },
    put: async () => ({ ...await raw.ask({ kind: 'claim', by: 'put', count: SLICE, mode: MODE }), cpuMs: 0 }),
    patch: async () => ({ ...await raw.ask({ kind: 'claim', by: 'patch', count: SLICE, mode: MODE }), cpuMs: 0 }),
    bare: () => measured(bare.pid, () => bench.load.open(bare.port, bare.asks(SLICE), PER_SECOND)),
  };
  const round = async (turn: number): Promise<Record<Side, Part>> => {
    const parts: Record<Side, Part[]> = { ours: [], put: [], patch: [], bare: [] };
    await service.untilIdle(POOL, SLICES * SLICE);
    await calm(cluster);
    for (let slice = 0; slice < SLICES; slice += 1) {
      for (const side of (turn + slice) % 2 === 0 ? SIDES : SIDES.toReversed()) parts[side].push(await sides[side]());
    }
    for (const result of claimed) await service.giveBack(result);
    claimed = [];
    await raw.ask({ kind: 'give back' });
    await bare.giveBack();
    return { ours: whole(parts.ours), put: whole(parts.put), patch: whole(parts.patch), bare: whole(parts.bare) };
  };
  const rounds: Record<Side, Part>[] = [];
  try {
    await round(0); // warms up
    for (let turn = 0; turn < bench.rounds; turn += 1) {
      rounds.push(await round(turn));
      bench.say(`round ${turn + 1}: p50 ${SIDES.map((side) => `${side} ${p50(rounds.at(-1)?.[side]).toFixed(2)}`).join(', ')} ms`);
    }
  } finally {
    await bare.stop();
  }
  const row = (name: string, other: Side, of: (part: Part | undefined) => number, marks: Partial<Measure>): Measure =>
    ({ name, unit: 'ms', better: 'less', ours: rounds.map(({ ours }) => of(ours)), theirs: rounds.map((each) => of(each[other])), ...marks });
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

const SIDES = ['ours', 'put', 'patch', 'bare'] as const;
type Side = (typeof SIDES)[number];

const whole = (parts: readonly Part[]): Part => ({ latencies: parts.flatMap(({ latencies }) => latencies), cpuMs: parts.reduce((sum, part) => sum + part.cpuMs, 0) });

const p50 = (part: Part | undefined): number => quantile(part?.latencies ?? [], 0.5);
const p99 = (part: Part | undefined): number => quantile(part?.latencies ?? [], 0.99);
const cpuMs = (part: Part | undefined): number => (part?.cpuMs ?? 0) / (part?.latencies.length ?? 1);
