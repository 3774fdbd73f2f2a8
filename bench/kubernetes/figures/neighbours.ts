import { beside } from '../../neighbours/beside.ts';
import { FLOODS } from '../../neighbours/floods.ts';
import type { Figure } from '../../figure.ts';
import { calm, createPool, onACluster, TEMPLATE } from '../cluster.ts';

/** On a cluster of its own with one replica, for floods that nodes don't withstand. */
export const neighbours: readonly Figure[] = FLOODS.filter(({ where }) => where === 'both').map(
  (flood) =>
    onACluster(
      `neighbours:${flood.name}`,
      `another tenant beside ${flood.about}`,
      async (cluster) => {
        const {
          replicas,
          first: { service },
        } = await cluster.startReplicas(1);
        const key = await replicas.tenant('noisy', 'noisy');
        await createPool(service, 'known', 0);
        return await beside(cluster.bench, flood, {
          quiet: service,
          quietSource: { templateName: TEMPLATE },
          noisy: {
            port: service.port,
            key,
            template: TEMPLATE,
            image: 'registry.invalid/sandbox:1',
          },
          calm: () => calm(cluster),
        });
      },
    ),
);
