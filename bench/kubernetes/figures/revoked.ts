import { revocationMeasures } from '../../revocation-measures.ts';
import { createPool, onACluster, untilIdleOnAll } from '../cluster.ts';

const REPLICAS = 3;

export const revoked = onACluster(
  'revoked',
  `a key is revoked: until ${REPLICAS} replicas refuse it, and have closed its terminals`,
  async ({ bench, startReplicas }) => {
    const { services, first, tenantKey } = await startReplicas(REPLICAS);
    await createPool(first.service, 'bench', 1);
    await untilIdleOnAll(services, 'bench', 1);
    const sandboxId = await first.service.claim('bench');
    return await revocationMeasures(bench, {
      ports: services.map(({ port }) => port),
      key: tenantKey,
      sandboxId,
    });
  },
);
