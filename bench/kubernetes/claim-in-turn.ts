import type { Ask } from '../kept-connection.ts';
import { expectAll } from '../load.ts';
import type { LoadOrder, LoadResult } from '../load-protocol.ts';
import { cpuMsOf } from '../process-facts.ts';
import { median, quantile } from '../statistics.ts';
import { Bare } from './bare.ts';
import { calm, createPool, type BenchCluster } from './cluster.ts';

export const SIDES = ['ours', 'put', 'lean put', 'patch', 'bare'] as const;
/**
 * A claim over REST; one raw PUT of such a record; the same without the list of who wrote which
 * field, as the product puts it; one raw PATCH of a Pod; a bare server that counts a seat in Redis
 * and puts a record.
 */
export type Side = (typeof SIDES)[number];

export interface ClaimTerms {
  /**
   * A round has so many slices of each side, all sides in turn; the pool is full again before the
   * next.
   */
  readonly slices: number;
  /** Claims in a slice. */
  readonly slice: number;
  readonly mode: LoadOrder['mode'];
}

/** A slice, or all of a round. */
export interface Part {
  readonly latencies: readonly number[];
  readonly tookMs: number;
  /** Of the daemon, or the bare server. */
  readonly cpuMs: number;
}

const POOL = 'bench';

/** What each side took, by round, with one replica. */
export const claimInTurn = async (
  cluster: BenchCluster,
  { slices, slice, mode }: ClaimTerms,
): Promise<readonly Readonly<Record<Side, Part>>[]> => {
  const { bench, raw, startReplicas } = cluster;
  const {
    first: { service, pid },
  } = await startReplicas(1);
  await raw.ask({ kind: 'make records', namespace: cluster.namespace, count: 2 * slices * slice });
  await raw.ask({ kind: 'make pods', namespace: cluster.namespace, count: PODS });
  const bare = await Bare.start(cluster, slices * slice);
  await createPool(service, POOL, slices * slice);
  const load = async (
    of: { readonly pid: number; readonly port: number },
    asks: readonly Ask[],
  ): Promise<Part & { readonly result: LoadResult }> => {
    const before = cpuMsOf(of.pid);
    const result = await (mode.kind === 'open'
      ? bench.load.open(of.port, asks, mode.perSecond)
      : bench.load.closed(of.port, asks, mode.inFlight));
    expectAll(result, 201);
    return {
      result,
      latencies: result.latencies,
      tookMs: result.tookMs,
      cpuMs: cpuMsOf(of.pid) - before,
    };
  };
  let claimed: LoadResult[] = [];
  const sides: Readonly<Record<Side, () => Promise<Part>>> = {
    ours: async () => {
      const part = await load({ pid, port: service.port }, service.claims(POOL, slice));
      claimed.push(part.result);
      return part;
    },
    put: async () => ({
      ...(await raw.ask({ kind: 'claim', by: 'put', count: slice, mode })),
      cpuMs: 0,
    }),
    'lean put': async () => ({
      ...(await raw.ask({ kind: 'claim', by: 'lean put', count: slice, mode })),
      cpuMs: 0,
    }),
    patch: async () => ({
      ...(await raw.ask({ kind: 'claim', by: 'patch', count: slice, mode })),
      cpuMs: 0,
    }),
    bare: () => load(bare, bare.asks(slice)),
  };
  const round = async (turn: number): Promise<Record<Side, Part>> => {
    const parts: Record<Side, Part[]> = { ours: [], put: [], 'lean put': [], patch: [], bare: [] };
    await service.untilIdle(POOL, slices * slice);
    await calm(cluster);
    for (let n = 0; n < slices; n += 1) {
      for (const side of (turn + n) % 2 === 0 ? SIDES : SIDES.toReversed())
        parts[side].push(await sides[side]());
    }
    for (const result of claimed) await service.giveBack(result);
    claimed = [];
    await raw.ask({ kind: 'give back' });
    await bare.giveBack();
    return {
      ours: whole(parts.ours),
      put: whole(parts.put),
      'lean put': whole(parts['lean put']),
      patch: whole(parts.patch),
      bare: whole(parts.bare),
    };
  };
  try {
    const rounds: Record<Side, Part>[] = [];
    await round(0); // warms up
    for (let turn = 0; turn < bench.rounds; turn += 1) {
      const one = await round(turn);
      rounds.push(one);
      bench.say(
        `round ${turn + 1}: ${SIDES.map((side) => `${side} p50 ${p50(one[side]).toFixed(2)} ms, ${rate(one[side]).toFixed(0)}/s, processor ${cpuMs(one[side]).toFixed(2)} ms`).join('; ')}`,
      );
    }
    return rounds;
  } finally {
    await bare.stop();
  }
};

/** Pods that are patched, again and again. */
const PODS = 500;

const whole = (parts: readonly Part[]): Part => ({
  latencies: parts.flatMap(({ latencies }) => latencies),
  tookMs: sumOf(parts, ({ tookMs }) => tookMs),
  cpuMs: sumOf(parts, (part) => part.cpuMs),
});

const sumOf = (parts: readonly Part[], of: (part: Part) => number): number =>
  parts.reduce((sum, part) => sum + of(part), 0);

export const p50 = ({ latencies }: Part): number => median(latencies);
export const p99 = ({ latencies }: Part): number => quantile(latencies, 0.99);
/** Processor time of one, in ms. */
export const cpuMs = ({ latencies, cpuMs: all }: Part): number => all / latencies.length;
/** A second. */
export const rate = ({ latencies, tookMs }: Part): number => (latencies.length * 1_000) / tookMs;
