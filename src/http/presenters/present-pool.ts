import type { PoolView } from '../../operations/views.ts';
import type { PoolDeletionWire, PoolWire } from '../schemas/pools.ts';
import { timestampOf } from './timestamp.ts';

const TEMPLATE_NAME = 'sandpool.dev/template-name';

export const presentPool = ({ record, phase, counts }: PoolView): PoolWire => ({
  name: record.name,
  namespace: record.owner.namespace,
  cpu: record.definition.cpu,
  memory: record.definition.memory,
  team: record.owner.team,
  user: record.owner.user,
  templateVersion: record.templateVersion,
  createdAt: timestampOf(record.createdAt),
  labels: record.labels,
  annotations: { ...record.annotations, [TEMPLATE_NAME]: record.templateName },
  spec: { replicas: record.replicas },
  status: {
    phase,
    idleReplicas: counts.idle,
    unavailableIdleReplicas: counts.unavailable,
    runningReplicas: counts.running,
    startingReplicas: counts.starting,
    stoppingReplicas: counts.stopping,
    failedReplicas: counts.failed,
  },
});

export const presentPoolDeletion = ({ record }: PoolView): PoolDeletionWire => ({
  name: record.name,
  namespace: record.owner.namespace,
  status: 'Deleting',
});
