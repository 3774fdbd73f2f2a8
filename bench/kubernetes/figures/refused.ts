import { apiCounts, trafficOf } from '../api-counts.ts';
import { createPool, onACluster } from '../cluster.ts';

const PER_SECOND = 1_000;
const SECONDS = 5;

export const refused = onACluster(
  'refused',
  `API requests that ${PER_SECOND} refused claims a second cause on an empty pool`,
  async ({ bench, controlPlane, startReplicas }) => {
    const {
      first: { service },
    } = await startReplicas(1);
    await createPool(service, 'bench', 0);
    const perSecond: number[] = [];
    for (let round = 0; round < bench.rounds; round += 1) {
      const before = await apiCounts(controlPlane);
      const { statuses, tookMs } = await bench.load.open(
        service.port,
        service.claims('bench', PER_SECOND * SECONDS),
        PER_SECOND,
      );
      const { reads, writes, text } = trafficOf(
        before,
        await apiCounts(controlPlane),
        tookMs / 1_000,
      );
      const wrong = statuses.find((status) => status !== 429);
      if (wrong !== undefined) throw new Error(`a claim was answered with ${wrong}`);
      bench.say(
        `${statuses.length} refused in ${(tookMs / 1_000).toFixed(1)} s; a second: ${text}`,
      );
      perSecond.push(reads + writes);
    }
    return [
      {
        name: `API requests/s, ${PER_SECOND} refused claims/s on an empty pool, a replica`,
        unit: '/s',
        better: 'less',
        ours: perSecond,
        reach: 5,
        beyond: 4,
      },
    ];
  },
);
