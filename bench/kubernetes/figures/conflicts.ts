import { expectAll, Load } from '../../load.ts';
import { apiCounts } from '../api-counts.ts';
import { createPool, onACluster, untilIdleOnAll } from '../cluster.ts';

const IDLE = 1_000;
const REPLICAS = 3;
const PER_SECOND = 50;
const CLAIMS = 500;
const REFUSED = 'PUT sandboxes (409)';

export const conflicts = onACluster(
  'conflicts',
  `claims that met a taken record: ${REPLICAS} replicas, ${IDLE} idle, ${PER_SECOND}/s`,
  async (cluster) => {
    const { services, first } = await cluster.startReplicas(REPLICAS);
    await createPool(first.service, 'bench', IDLE);
    const loads = services.map(() => new Load());
    const shares: number[] = [];
    try {
      for (let round = 0; round < cluster.bench.rounds; round += 1) {
        await untilIdleOnAll(services, 'bench', IDLE);
        const before = (await apiCounts(cluster.controlPlane)).get(REFUSED) ?? 0;
        const results = await Promise.all(
          services.map((service, n) =>
            (loads[n] ?? cluster.bench.load).open(
              service.port,
              service.claims('bench', Math.ceil(CLAIMS / REPLICAS)),
              PER_SECOND / REPLICAS,
            ),
          ),
        );
        for (const result of results) expectAll(result, 201);
        shares.push(
          ((((await apiCounts(cluster.controlPlane)).get(REFUSED) ?? 0) - before) / CLAIMS) * 100,
        );
        for (const result of results) await first.service.giveBack(result);
      }
    } finally {
      await Promise.all(loads.map((load) => load.stop()));
    }
    return [
      {
        name: `claims that met a taken record, ${REPLICAS} replicas, ${IDLE} idle, ${PER_SECOND}/s`,
        unit: '%',
        better: 'less',
        ours: shares,
        reach: 0.5,
        beyond: 0.1,
      },
    ];
  },
);
