import type { Measure } from '../../measure.ts';
import { claimInTurn, cpuMs, p50, p99, type Part, type Side } from '../claim-in-turn.ts';
import { onACluster } from '../cluster.ts';

const PER_SECOND = 50;

export const claim = onACluster(
  'claim',
  `latency and processor time of claims at ${PER_SECOND}/s against raw writes and a bare server`,
  async (cluster) => {
    const rounds = await claimInTurn(cluster, {
      slices: 5,
      slice: 100,
      mode: { kind: 'open', perSecond: PER_SECOND },
    });
    const row = (
      name: string,
      other: Side,
      of: (part: Part) => number,
      marks: Partial<Measure>,
    ): Measure => ({
      name,
      unit: 'ms',
      better: 'less',
      ours: rounds.map(({ ours }) => of(ours)),
      theirs: rounds.map((each) => of(each[other])),
      ...marks,
    });
    const at = `at ${PER_SECOND}/s`;
    return [
      row(`claim p50 ${at} / raw PUT of a record`, 'put', p50, { reach: 1.4, beyond: 1.2 }),
      row(`claim p99 ${at} / raw PUT of a record`, 'put', p99, { reach: 1.6, beyond: 1.3 }),
      row(`claim p50 ${at} / raw PATCH of a Pod`, 'patch', p50, { reach: 0.95, beyond: 0.8 }),
      row(`claim p99 ${at} / raw PATCH of a Pod`, 'patch', p99, { reach: 1.1, beyond: 0.9 }),
      row(`processor time of a claim ${at} / bare POST, EVALSHA, PUT`, 'bare', cpuMs, {
        reach: 2,
        beyond: 1.5,
      }),
      row(`claim p50 ${at} / raw PUT without field owners, as ours`, 'lean put', p50, {}),
      row(`claim p50 ${at} / bare POST, EVALSHA, PUT`, 'bare', p50, {}),
    ];
  },
);
