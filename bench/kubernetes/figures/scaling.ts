import { reactions } from '../../reactions.ts';
import { quantile } from '../../statistics.ts';
import { calm, onACluster, TEMPLATE } from '../cluster.ts';

export const scaling = onACluster(
  'scaling',
  'with autoscaling: from a refused claim to the moment at which a list shows the next instance',
  async (cluster) => {
    const {
      first: { service },
    } = await cluster.startReplicas(1);
    const ours: number[] = [];
    for (let round = 0; round <= cluster.bench.rounds; round += 1) {
      await calm(cluster);
      const latencies = await reactions(service, TEMPLATE);
      if (round > 0) ours.push(quantile(latencies, 0.5)); // the first warms up
    }
    return [
      {
        name: 'refused claim to the next instance, p50',
        unit: 'ms',
        better: 'less',
        reach: 300,
        beyond: 100,
        ours,
      },
    ];
  },
);
