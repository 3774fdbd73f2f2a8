import { printable } from '../common/printable.ts';
import type {
  ApiKey,
  AuditRecord,
  Event,
  FeatureGates,
  InstanceType,
  Pool,
  Quota,
  Sandbox,
  SandboxStatistics,
  Template,
  Volume,
} from '../client/wire.ts';
import { formatDuration } from '../../model/durations.ts';
import { formatMemory } from '../../model/quantities.ts';
import { imageColumn, imageFields, SHAPE, shapeFields } from './shape-rows.ts';
import { fields, table } from './table.ts';

/** `wide` columns are shown only on request. */
export interface Column<T> {
  readonly heading: string;
  readonly of: (item: T) => string | number | undefined;
  readonly wide?: true;
}

export const sandboxTable = (sandboxes: readonly Sandbox[], wide: boolean): string =>
  tableOf(SANDBOX, sandboxes, wide);
export const poolTable = (pools: readonly Pool[], wide: boolean): string =>
  tableOf(POOL, pools, wide);
export const eventTable = (events: readonly Event[], wide: boolean): string =>
  tableOf(EVENT, events, wide);

export const eventLine = (event: Event): string =>
  table(
    [
      shortTime(event.time) ?? '',
      event.type,
      event.reason,
      event.sandboxId ?? event.poolName ?? '-',
      event.message,
    ],
    [],
  );

export const auditTable = (records: readonly AuditRecord[], wide: boolean): string =>
  tableOf(AUDIT, records, wide);

export const auditLine = (record: AuditRecord): string =>
  table(
    AUDIT.filter(({ wide }) => !wide).map(({ of }) => String(of(record) ?? '-')),
    [],
  );

export const keyTable = (keys: readonly ApiKey[], wide: boolean): string =>
  tableOf(KEY, keys, wide);

export const quotaTable = (quotas: readonly Quota[], wide: boolean): string =>
  tableOf(QUOTA, quotas, wide);

export const templateTable = (templates: readonly Template[], wide: boolean): string =>
  tableOf(TEMPLATE, templates, wide);
export const instanceTypeTable = (types: readonly InstanceType[], wide: boolean): string =>
  tableOf(INSTANCE_TYPE, types, wide);
export const volumeTable = (volumes: readonly Volume[], wide: boolean): string =>
  tableOf(VOLUME, volumes, wide);

export const featureTable = (gates: FeatureGates): string =>
  table(
    ['FEATURE', 'HERE'],
    Object.entries(gates).map(([name, here]) => [name, here ? 'yes' : 'no']),
  );

export const statisticsTable = ({
  total,
  byStatus,
  byNamespace,
}: SandboxStatistics['statistics']): string =>
  table(
    ['OF', 'SANDBOXES'],
    [
      ['all', String(total)],
      ...Object.entries(byStatus).map(([status, count]) => [status, String(count)]),
      ...Object.entries(byNamespace).map(([namespace, count]) => [
        `namespace ${namespace}`,
        String(count),
      ]),
    ],
  );

const TEMPLATE_SOURCES = {
  file: 'a file',
  source: 'here, for all clusters',
  copy: 'the manager; change it there',
};

export const templateFields = (template: Template): string =>
  fields([
    ['template', template.name],
    ['version', template.version],
    ['description', template.description],
    ['created', shortTime(template.createdAt)],
    ['cpu', template.cpu],
    ['memory', template.memory],
    ...shapeFields(template),
    ['comes from', template.syncSource && TEMPLATE_SOURCES[template.fleet ?? 'file']],
    ['pool sizing', template.poolSizing],
    ['docs', template.docs?.split('\n')[0]],
  ]);

export const statusOf = ({
  status = '',
  paused,
}: {
  readonly status?: string;
  readonly paused?: true;
}): string => (paused ? `${status}, paused` : status);

export const sandboxFields = (sandbox: Sandbox): string =>
  fields([
    ['sandbox', sandbox.sandboxId],
    ['status', statusOf(sandbox)],
    ['pool', sandbox.poolName],
    ['namespace', sandbox.namespace],
    ['owner', `${sandbox.team}/${sandbox.user}`],
    ['workload', sandbox.podName],
    ['claimed', shortTime(sandbox.claimedAt)],
    ['started', shortTime(sandbox.startedAt)],
    ['terminated', shortTime(sandbox.terminatedAt)],
    ['end', sandbox.endReason],
    ['idle timeout', sandbox.idleTimeout],
    ['idle until', shortTime(sandbox.idleExpiresAt)],
    ['cpu', sandbox.cpu],
    ['memory', sandbox.memory],
    ...imageFields(sandbox),
    ...Object.entries(sandbox.endpoints ?? {}).map(
      ([name, url]) => [`endpoint ${name}`, url] as const,
    ),
    ...Object.entries(sandbox.metadata ?? {}).map(
      ([key, value]) => [`metadata ${printable(key)}`, printable(value)] as const,
    ),
  ]);

export const poolFields = (pool: Pool): string =>
  fields([
    ['pool', pool.name],
    ['phase', pool.status.phase],
    ['namespace', pool.namespace],
    ['owner', `${pool.team}/${pool.user}`],
    ['template', templateOf(pool)],
    ['template version', pool.templateVersion],
    ['created', shortTime(pool.createdAt)],
    ['cpu', pool.cpu],
    ['memory', pool.memory],
    ...shapeFields(pool),
    ['replicas', pool.spec.replicas],
    ['idle', pool.status.idleReplicas],
    ['unavailable', pool.status.unavailableIdleReplicas],
    ['starting', pool.status.startingReplicas],
    ['running', pool.status.runningReplicas],
    ['stopping', pool.status.stoppingReplicas],
    ['failed', pool.status.failedReplicas],
    ['revision', pool.status.updateRevision],
    [
      'to be replaced',
      pool.status.outdatedReplicas === 0 ? undefined : pool.status.outdatedReplicas,
    ],
    ...pool.status.conditions
      .filter(({ message }) => message !== '')
      .map(({ type, reason, message }) => [type.toLowerCase(), `${reason}: ${message}`] as const),
    ...Object.entries(pool.labels ?? {}).map(([name, value]) => [`label ${name}`, value] as const),
  ]);

/** To the second. */
export const shortTime = (timestamp: string | undefined): string | undefined =>
  timestamp?.replace(/\.\d+Z$/, 'Z');

export const templateOf = (pool: Pool): string | undefined =>
  pool.annotations?.['sandpool.dev/template-name'];

const SANDBOX: readonly Column<Sandbox>[] = [
  { heading: 'SANDBOX', of: ({ sandboxId }) => sandboxId },
  { heading: 'POOL', of: ({ poolName }) => poolName },
  { heading: 'STATUS', of: statusOf },
  { heading: 'CLAIMED', of: ({ claimedAt }) => shortTime(claimedAt) },
  {
    heading: 'DURATION',
    of: ({ durationSeconds }) =>
      durationSeconds === undefined ? undefined : formatDuration(durationSeconds * 1_000),
  },
  { heading: 'END', of: ({ endReason }) => endReason },
  { heading: 'NAMESPACE', of: ({ namespace }) => namespace, wide: true },
  { heading: 'OWNER', of: ({ team, user }) => `${team}/${user}`, wide: true },
  { heading: 'TERMINATED', of: ({ terminatedAt }) => shortTime(terminatedAt), wide: true },
  { heading: 'CPU', of: ({ cpu }) => cpu, wide: true },
  { heading: 'MEMORY', of: ({ memory }) => memory, wide: true },
  imageColumn,
];

const POOL: readonly Column<Pool>[] = [
  { heading: 'POOL', of: ({ name }) => name },
  { heading: 'PHASE', of: ({ status }) => status.phase },
  { heading: 'REPLICAS', of: ({ spec }) => spec.replicas },
  { heading: 'IDLE', of: ({ status }) => status.idleReplicas },
  { heading: 'STARTING', of: ({ status }) => status.startingReplicas },
  { heading: 'RUNNING', of: ({ status }) => status.runningReplicas },
  { heading: 'FAILED', of: ({ status }) => status.failedReplicas },
  { heading: 'CPU', of: ({ cpu }) => cpu },
  { heading: 'MEMORY', of: ({ memory }) => memory },
  ...SHAPE,
  { heading: 'UNAVAILABLE', of: ({ status }) => status.unavailableIdleReplicas, wide: true },
  { heading: 'STOPPING', of: ({ status }) => status.stoppingReplicas, wide: true },
  { heading: 'OUTDATED', of: ({ status }) => status.outdatedReplicas, wide: true },
  { heading: 'TEMPLATE', of: templateOf, wide: true },
  { heading: 'NAMESPACE', of: ({ namespace }) => namespace, wide: true },
  { heading: 'OWNER', of: ({ team, user }) => `${team}/${user}`, wide: true },
  { heading: 'CREATED', of: ({ createdAt }) => shortTime(createdAt), wide: true },
];

const KEY: readonly Column<ApiKey>[] = [
  { heading: 'KEY', of: ({ keyId }) => keyId },
  { heading: 'NAME', of: ({ name }) => name },
  { heading: 'ROLE', of: ({ role }) => role },
  { heading: 'EXPIRES', of: ({ expiresAt }) => shortTime(expiresAt) },
  { heading: 'OWNER', of: ({ team, user }) => `${team}/${user}`, wide: true },
  { heading: 'ISSUED', of: ({ issuedAt }) => shortTime(issuedAt), wide: true },
  { heading: 'CREATED BY', of: ({ createdBy }) => createdBy, wide: true },
  { heading: 'DESCRIPTION', of: ({ description }) => description, wide: true },
];

const quotaAmount = (resource: Quota['resource'], amount: number): string | number =>
  resource === 'memory' ? formatMemory(amount) : amount;

const QUOTA: readonly Column<Quota>[] = [
  { heading: 'RESOURCE', of: ({ resource }) => resource },
  { heading: 'LIMIT', of: ({ resource, limit }) => quotaAmount(resource, limit) },
  { heading: 'USED', of: ({ resource, used }) => quotaAmount(resource, used) },
  { heading: 'REMAINING', of: ({ resource, remaining }) => quotaAmount(resource, remaining) },
  { heading: 'OF', of: ({ name }) => name, wide: true },
];

const TEMPLATE: readonly Column<Template>[] = [
  { heading: 'TEMPLATE', of: ({ name }) => name },
  { heading: 'VERSION', of: ({ version }) => version },
  { heading: 'CPU', of: ({ cpu }) => cpu },
  { heading: 'MEMORY', of: ({ memory }) => memory },
  { heading: 'DESCRIPTION', of: ({ description }) => description },
  ...SHAPE,
  { heading: 'SIZING', of: ({ poolSizing }) => poolSizing, wide: true },
  { heading: 'SOURCE', of: ({ syncSource }) => syncSource, wide: true },
  { heading: 'CREATED', of: ({ createdAt }) => shortTime(createdAt), wide: true },
];

const INSTANCE_TYPE: readonly Column<InstanceType>[] = [
  { heading: 'TYPE', of: ({ name }) => name },
  {
    heading: 'CPU',
    of: ({ baseResources: { limits, requests } }) => limits['cpu'] ?? requests['cpu'],
  },
  {
    heading: 'MEMORY',
    of: ({ baseResources: { limits, requests } }) => limits['memory'] ?? requests['memory'],
  },
  { heading: 'MULTIPLIER', of: ({ maxMultiplier }) => `to ${maxMultiplier}` },
  { heading: 'NAME', of: ({ showName }) => showName },
  { heading: 'DESCRIPTION', of: ({ description }) => description, wide: true },
];

const VOLUME: readonly Column<Volume>[] = [
  { heading: 'VOLUME', of: ({ claimName }) => claimName },
  { heading: 'CAPACITY', of: ({ capacity }) => capacity },
  { heading: 'MODES', of: ({ accessModes }) => accessModes.join(',') },
  { heading: 'NAME', of: ({ displayName }) => displayName },
  { heading: 'CLASS', of: ({ storageClass }) => storageClass, wide: true },
  { heading: 'PHASE', of: ({ phase }) => phase, wide: true },
];

const EVENT: readonly Column<Event>[] = [
  { heading: 'TIME', of: ({ time }) => shortTime(time) },
  { heading: 'TYPE', of: ({ type }) => type },
  { heading: 'REASON', of: ({ reason }) => reason },
  { heading: 'MESSAGE', of: ({ message }) => message },
  { heading: 'POOL', of: ({ poolName }) => poolName, wide: true },
  { heading: 'SANDBOX', of: ({ sandboxId }) => sandboxId, wide: true },
];

const AUDIT: readonly Column<AuditRecord>[] = [
  { heading: 'TIME', of: ({ time }) => shortTime(time) },
  {
    heading: 'WHO',
    of: ({ team, user, via, replica, kind }) =>
      user === undefined ? (via ?? (kind === 'write' ? undefined : replica)) : `${team}/${user}`,
  },
  { heading: 'WHAT', of: ({ kind, operation }) => operation ?? kind },
  {
    heading: 'OUTCOME',
    of: ({ status, errorCode, count, after }) => errorCode ?? status ?? count ?? after,
  },
  {
    heading: 'OF',
    of: ({ params, target }) =>
      [...new Set([...Object.values(params ?? {}), ...Object.values(target ?? {})])].join(' '),
  },
  { heading: 'KEY', of: ({ keyId }) => keyId, wide: true },
  { heading: 'REQUEST', of: ({ requestId }) => requestId, wide: true },
  { heading: 'CLUSTER', of: ({ clusterID }) => clusterID, wide: true },
  { heading: 'REPLICA', of: ({ replica }) => replica, wide: true },
  { heading: 'NUMBER', of: ({ seq }) => seq, wide: true },
];

export const tableOf = <T>(
  columns: readonly Column<T>[],
  items: readonly T[],
  wide: boolean,
): string => {
  const shown = columns.filter((column) => wide || column.wide === undefined);
  return table(
    shown.map(({ heading }) => heading),
    items.map((item) =>
      shown.map(({ of }) => {
        const value = of(item);
        return value === undefined || value === '' ? '-' : String(value);
      }),
    ),
  );
};
