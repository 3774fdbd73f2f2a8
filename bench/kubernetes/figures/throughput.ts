import type { Measure } from '../../measure.ts';
import { claimInTurn, cpuMs, p99, rate, type Part, type Side } from '../claim-in-turn.ts';
import { onACluster } from '../cluster.ts';

const IN_FLIGHT = 16;

export const throughput = onACluster(
  'throughput',
  `claims a second with ${IN_FLIGHT} in flight, for some 5 s a round, against PATCHes of Pods`,
  async (cluster) => {
    const rounds = await claimInTurn(cluster, {
      slices: 5,
      slice: 200,
      mode: { kind: 'closed', inFlight: IN_FLIGHT },
    });
    const row = (
      name: string,
      other: Side,
      of: (part: Part) => number,
      marks: Partial<Measure>,
    ): Measure => ({
      name,
      unit: '/s',
      better: 'more',
      ours: rounds.map(({ ours }) => of(ours)),
      theirs: rounds.map((each) => of(each[other])),
      ...marks,
    });
    return [
      row('sustained claims/s / raw PATCHes of Pods/s', 'patch', rate, { reach: 1, beyond: 1.15 }),
      row('sustained claims/s / raw PUTs of records/s', 'put', rate, {}),
      {
        name: 'claim p99 meanwhile',
        unit: 'ms',
        better: 'less',
        ours: rounds.map(({ ours }) => p99(ours)),
        reach: 200,
      },
      row('processor time of a sustained claim / bare POST, EVALSHA, PUT', 'bare', cpuMs, {
        unit: 'ms',
        better: 'less',
        reach: 2,
        beyond: 1.5,
      }),
    ];
  },
);
