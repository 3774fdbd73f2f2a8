import type { ApiKey, Event, Pool, Sandbox } from '../client/wire.ts';
import { formatDuration } from '../model/durations.ts';
import { fields, table } from './table.ts';

/** One thing's column: its heading, and what stands there. `wide` ones show when more is asked for. */
interface Column<T> {
  readonly heading: string;
  readonly of: (item: T) => string | number | undefined;
  readonly wide?: true;
}

export const sandboxTable = (sandboxes: readonly Sandbox[], wide: boolean): string => tableOf(SANDBOX, sandboxes, wide);
export const poolTable = (pools: readonly Pool[], wide: boolean): string => tableOf(POOL, pools, wide);
export const eventTable = (events: readonly Event[], wide: boolean): string => tableOf(EVENT, events, wide);

/** One event as a line by itself, for a list that has no end. */
export const eventLine = (event: Event): string => table([shortTime(event.time) ?? '', event.type, event.reason, event.sandboxId ?? event.poolName ?? '-', event.message], []);

export const keyTable = (keys: readonly ApiKey[], wide: boolean): string => tableOf(KEY, keys, wide);

export const sandboxFields = (sandbox: Sandbox): string => fields([
  ['sandbox', sandbox.sandboxId], ['status', sandbox.status], ['pool', sandbox.poolName], ['namespace', sandbox.namespace],
  ['owner', `${sandbox.team}/${sandbox.user}`], ['workload', sandbox.podName], ['claimed', shortTime(sandbox.claimedAt)],
  ['started', shortTime(sandbox.startedAt)], ['terminated', shortTime(sandbox.terminatedAt)], ['end', sandbox.endReason],
  ['idle timeout', sandbox.idleTimeout], ['idle until', shortTime(sandbox.idleExpiresAt)], ['cpu', sandbox.cpu], ['memory', sandbox.memory],
  ...Object.entries(sandbox.containerImages ?? {}).map(([name, image]) => [`image of ${name}`, image] as const),
  ...Object.entries(sandbox.endpoints ?? {}).map(([name, url]) => [`endpoint ${name}`, url] as const),
]);

export const poolFields = (pool: Pool): string => fields([
  ['pool', pool.name], ['phase', pool.status.phase], ['namespace', pool.namespace], ['owner', `${pool.team}/${pool.user}`],
  ['template', templateOf(pool)], ['template version', pool.templateVersion], ['created', shortTime(pool.createdAt)],
  ['cpu', pool.cpu], ['memory', pool.memory], ['replicas', pool.spec.replicas], ['idle', pool.status.idleReplicas],
  ['unavailable', pool.status.unavailableIdleReplicas], ['starting', pool.status.startingReplicas], ['running', pool.status.runningReplicas],
  ['stopping', pool.status.stoppingReplicas], ['failed', pool.status.failedReplicas],
  ...Object.entries(pool.labels ?? {}).map(([name, value]) => [`label ${name}`, value] as const),
]);

/** To the second. */
export const shortTime = (timestamp: string | undefined): string | undefined => timestamp?.replace(/\.\d+Z$/, 'Z');

const templateOf = (pool: Pool): string | undefined => pool.annotations?.['sandpool.dev/template-name'];

const SANDBOX: readonly Column<Sandbox>[] = [
  { heading: 'SANDBOX', of: ({ sandboxId }) => sandboxId },
  { heading: 'POOL', of: ({ poolName }) => poolName },
  { heading: 'STATUS', of: ({ status }) => status },
  { heading: 'CLAIMED', of: ({ claimedAt }) => shortTime(claimedAt) },
  { heading: 'DURATION', of: ({ durationSeconds }) => (durationSeconds === undefined ? undefined : formatDuration(durationSeconds * 1_000)) },
  { heading: 'END', of: ({ endReason }) => endReason },
  { heading: 'NAMESPACE', of: ({ namespace }) => namespace, wide: true },
  { heading: 'OWNER', of: ({ team, user }) => `${team}/${user}`, wide: true },
  { heading: 'TERMINATED', of: ({ terminatedAt }) => shortTime(terminatedAt), wide: true },
  { heading: 'CPU', of: ({ cpu }) => cpu, wide: true },
  { heading: 'MEMORY', of: ({ memory }) => memory, wide: true },
  { heading: 'IMAGE', of: ({ containerImages }) => Object.values(containerImages ?? {}).join(','), wide: true },
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
  { heading: 'UNAVAILABLE', of: ({ status }) => status.unavailableIdleReplicas, wide: true },
  { heading: 'STOPPING', of: ({ status }) => status.stoppingReplicas, wide: true },
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
  { heading: 'DESCRIPTION', of: ({ description }) => description, wide: true },
];

const EVENT: readonly Column<Event>[] = [
  { heading: 'TIME', of: ({ time }) => shortTime(time) },
  { heading: 'TYPE', of: ({ type }) => type },
  { heading: 'REASON', of: ({ reason }) => reason },
  { heading: 'MESSAGE', of: ({ message }) => message },
  { heading: 'POOL', of: ({ poolName }) => poolName, wide: true },
  { heading: 'SANDBOX', of: ({ sandboxId }) => sandboxId, wide: true },
];

const tableOf = <T>(columns: readonly Column<T>[], items: readonly T[], wide: boolean): string => {
  const shown = columns.filter((column) => wide || column.wide === undefined);
  return table(shown.map(({ heading }) => heading), items.map((item) => shown.map(({ of }) => {
    const value = of(item);
    return value === undefined || value === '' ? '-' : String(value);
  })));
};
