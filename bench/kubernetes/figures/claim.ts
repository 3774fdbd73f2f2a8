import { inPairs, type Pairs } from '../../figure.ts';
import { costOf, type LoadResult } from '../../load.ts';
import { rowOf, type Measure } from '../../measure.ts';
import { quantile } from '../../statistics.ts';
import { Bare } from '../bare.ts';
import { calm, createPool, onACluster } from '../cluster.ts';

const PER_SECOND = 50;
/** Slices of each side, in turn; the pool is full again before the next round. */
const [SLICES, SLICE] = [5, 100];
const POOL = 'bench';
const PODS = 500;

interface Part {
  readonly latencies: readonly number[];
  readonly cpuMs: number;
}

export const claim = onACluster(
  'claim',
  `claims at ${PER_SECOND}/s, against PATCHes of Pods, and against a bare server that counts a seat in Redis and puts a record`,
  async (cluster) => {
    const { bench, raw, namespace, controlPlane, startReplicas } = cluster;
    const kubeconfig = controlPlane.kubeconfig('sandpool');
    const { service, pid } = (await startReplicas(1)).first;
    await raw.ask({ kind: 'make pods', kubeconfig, namespace, count: PODS });
    await using bare = await Bare.start(cluster, SLICES * SLICE);
    await createPool(service, POOL, SLICES * SLICE);
    const claimed: LoadResult[] = [];
    const ours = async (): Promise<Part> => {
      const { result, cpuMs } = await costOf([pid], 201, () =>
        bench.load.open(service.port, service.claims(POOL, SLICE), PER_SECOND),
      );
      claimed.push(result);
      return { latencies: result.latencies, cpuMs };
    };
    const patches = async (): Promise<Part> => {
      const terms = { count: SLICE, perSecond: PER_SECOND };
      return { latencies: await raw.ask({ kind: 'patch', kubeconfig, ...terms }), cpuMs: 0 };
    };
    const posts = async (): Promise<Part> => {
      const { result, cpuMs } = await costOf([bare.pid], 201, () =>
        bench.load.open(bare.port, bare.asks(SLICE), PER_SECOND),
      );
      return { latencies: result.latencies, cpuMs };
    };
    /** Each round is the whole of its slices. */
    const against = async (theirs: () => Promise<Part>): Promise<Pairs<Part>> => {
      const found: { ours: Part[]; theirs: Part[] } = { ours: [], theirs: [] };
      for (let round = 0; round <= bench.rounds; round += 1) {
        await service.untilIdle(POOL, SLICES * SLICE);
        await calm(cluster);
        const parts = await inPairs({ rounds: SLICES }, { ours, theirs });
        for (const side of ['ours', 'theirs'] as const) found[side].push(whole(parts[side]));
        for (const result of claimed.splice(0)) await service.giveBack(result);
        await bare.giveBack();
      }
      return { ours: found.ours.slice(1), theirs: found.theirs.slice(1) }; // the first warms up
    };
    const at = `at ${PER_SECOND}/s`;
    const [byPatch, byBare] = [await against(patches), await against(posts)];
    return [
      rowOf({ name: `claim p50 ${at} / PATCH of a Pod`, reach: 0.95, beyond: 0.8 }, byPatch, p50),
      rowOf({ name: `claim p99 ${at} / PATCH of a Pod`, reach: 1.1, beyond: 0.9 }, byPatch, p99),
      rowOf({ name: `claim p50 ${at} / bare POST, EVALSHA, PUT` }, byBare, p50),
      rowOf(
        { name: `processor time of it / bare POST, EVALSHA, PUT`, reach: 2, beyond: 1.5 },
        byBare,
        ({ cpuMs }) => cpuMs,
      ),
    ] satisfies readonly Measure[];
  },
);

const whole = (parts: readonly Part[]): Part => ({
  latencies: parts.flatMap(({ latencies }) => latencies),
  cpuMs: parts.reduce((sum, { cpuMs }) => sum + cpuMs, 0) / parts.length,
});

const p50 = ({ latencies }: Part): number => quantile(latencies, 0.5);
const p99 = ({ latencies }: Part): number => quantile(latencies, 0.99);
