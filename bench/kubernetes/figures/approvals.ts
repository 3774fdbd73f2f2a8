import { decisions } from '../../decisions.ts';
import { onACluster } from '../cluster.ts';

const REPLICAS = 3;

export const approvals = onACluster(
  'approvals',
  `a decision at one of ${REPLICAS} replicas: until a client that waits at another has its answer`,
  async ({ bench, startReplicas }) => {
    const { services, first, tenantKey } = await startReplicas(REPLICAS, {
      SANDPOOL_APPROVALS_RULES: 'require operation=createApiKey role=user',
    });
    return [
      await decisions(bench, {
        dataDir: first.replica.dataDir,
        ports: services.map(({ port }) => port),
        key: tenantKey,
      }),
    ];
  },
);
