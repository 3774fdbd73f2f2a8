import { isSameData } from '../../../lib/plain-data.ts';
import { DEFAULT_UPDATE_STRATEGY, type PoolRecord } from '../../../model/pools/pool.ts';
import type { PoolOverrides } from '../../../model/pools/pool-source.ts';
import { accessField } from '../../../model/tenant.ts';
import type { PoolSyncView, PoolView } from '../../../actors/views.ts';
import type { PoolDeletionWire, PoolWire, EmbeddedTemplateWire } from './schema.ts';
import { presentCondition } from '../present-condition.ts';
import { presentInstanceShape } from '../instance-shape.ts';
import { timestampOf } from '../../corridor/common-schema.ts';
import { formatDuration } from '../../../model/durations.ts';
import { formatMemory } from '../../../model/quantities.ts';
import type { ContainerDefinition, InstanceDefinition } from '../../../model/templates/template.ts';

const TEMPLATE_NAME = 'sandpool.dev/template-name';

export const presentPool = (view: PoolView): PoolWire => {
  const pool = presentListedPool(view);
  return {
    ...pool,
    status: { ...pool.status, template: presentEmbeddedTemplate(view.record.definition) },
  };
};

export const presentListedPool = ({
  record,
  phase,
  counts,
  updated,
  conditions,
}: PoolView): PoolWire => ({
  name: record.name,
  namespace: record.owner.namespace,
  cpu: record.definition.cpu,
  memory: record.definition.memory,
  ...presentInstanceShape(record.definition),
  team: record.owner.team,
  user: record.owner.user,
  templateVersion: record.templateVersion ?? record.updateRevision,
  createdAt: timestampOf(record.createdAt),
  labels: record.labels,
  annotations: annotationsOf(record),
  spec: presentSpec(record),
  status: {
    phase,
    idleReplicas: counts.idle,
    unavailableIdleReplicas: counts.unavailable,
    runningReplicas: counts.running,
    startingReplicas: counts.starting,
    stoppingReplicas: counts.stopping + counts.retiring,
    failedReplicas: counts.failed,
    updateRevision: record.updateRevision,
    updatedReplicas: unclaimedIn(updated) + updated.running,
    outdatedReplicas: unclaimedIn(counts) - unclaimedIn(updated),
    ...observedIn(record),
    conditions: conditions.map(presentCondition),
  },
});

/** The template as a sync would apply it, plus overrides without a template field. */
export const poolSyncDocument = ({ record, spec }: PoolSyncView): object => {
  const { volumes, gateway, envd, imagePullSecretConfigured } = record.source.overrides ?? {};
  const overrides = Object.entries({ volumes, gateway, envd, imagePullSecretConfigured }).filter(
    ([, value]) => value !== undefined,
  );
  return {
    metadata: {
      name: record.name,
      namespace: record.owner.namespace,
      annotations: annotationsOf(record),
    },
    spec: {
      ...spec,
      overrides: overrides.length === 0 ? undefined : Object.fromEntries(overrides),
    },
  };
};

const annotationsOf = ({
  annotations,
  source: { templateName },
}: PoolRecord): Readonly<Record<string, string>> => ({
  ...annotations,
  ...(templateName === undefined ? {} : { [TEMPLATE_NAME]: templateName }),
});

const observedIn = ({
  source,
  templateVersion,
  unresolved,
}: PoolRecord): Pick<PoolWire['status'], 'observedTemplateVersion'> => {
  const observedTemplateVersion =
    source.templateName === undefined
      ? undefined
      : (unresolved?.templateVersion ?? templateVersion);
  return observedTemplateVersion === undefined ? {} : { observedTemplateVersion };
};

const presentSpec = ({
  access,
  replicas,
  minReplicas,
  maxReplicas,
  updateStrategy,
  source: { templateName: _inAnnotations, overrides, ...source },
}: PoolRecord): PoolWire['spec'] => ({
  replicas,
  minReplicas,
  maxReplicas,
  ...accessField(access),
  updateStrategy: isSameData(updateStrategy, DEFAULT_UPDATE_STRATEGY) ? undefined : updateStrategy,
  ...source,
  overrides: overrides ? presentOverrides(overrides) : undefined,
});

const presentOverrides = ({
  volumes,
  ...overrides
}: PoolOverrides): NonNullable<PoolWire['spec']['overrides']> => ({
  ...overrides,
  volumes: volumes ? [...volumes] : undefined,
});

export const presentPoolDeletion = ({ record }: PoolView): PoolDeletionWire => ({
  name: record.name,
  namespace: record.owner.namespace,
  status: 'Deleting',
});

const unclaimedIn = ({ starting, idle, unavailable }: PoolView['counts']): number =>
  starting + idle + unavailable;

const presentEmbeddedTemplate = (definition: InstanceDefinition): EmbeddedTemplateWire => {
  const endpoints = Object.entries(definition.endpoints ?? {});
  return {
    containers: definition.containers.map(presentContainer),
    network: definition.network,
    endpoints:
      endpoints.length === 0
        ? undefined
        : endpoints.map(([name, { port, scheme }]) => ({ name, port, scheme })),
    startupTimeout: formatDuration(definition.startupTimeoutMs),
    idleTimeout: formatDuration(definition.idleTimeoutMs),
    maxLifetime: formatDuration(definition.maxLifetimeMs),
  };
};

const presentContainer = (
  container: ContainerDefinition,
): EmbeddedTemplateWire['containers'][number] => ({
  name: container.name,
  image: container.image,
  command: [...container.argv],
  workingDir: container.workingDir,
  env: Object.keys(container.env).map((name) => ({ name })),
  resources: {
    limits: sizeOf(container),
    requests: container.requests ? sizeOf(container.requests) : undefined,
  },
});

const sizeOf = ({
  cpuCores,
  memoryBytes,
}: Pick<ContainerDefinition, 'cpuCores' | 'memoryBytes'>): { cpu: string; memory: string } => ({
  cpu: `${Math.round(cpuCores * 1_000)}m`,
  memory: formatMemory(memoryBytes),
});
