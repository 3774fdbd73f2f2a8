import { formatDuration } from './durations.ts';
import type { InstanceId } from './identifiers.ts';
import { wordsOfEnded, type End, type EndReason } from './sandbox.ts';
import type { Tenant } from './tenant.ts';

/** Reasons are in one word, like those of Kubernetes' events. */
export type LifecycleEvent =
  | { readonly reason: 'Created' | 'Started' | 'Ready' | 'Recovered' }
  /** The instance is alive but can't be claimed. */
  | { readonly reason: 'Unhealthy'; readonly why: string }
  /** A claimed sandbox stays on the node until it ends. */
  | { readonly reason: 'NodeLeaving'; readonly why: string }
  | { readonly reason: 'Claimed' }
  | { readonly reason: 'Paused' | 'Resumed' }
  | { readonly reason: 'IdleTimeoutChanged'; readonly idleTimeoutMs: number }
  /** A container other than the first ended by itself; the sandbox continues. */
  | { readonly reason: 'ContainerEnded'; readonly container: string; readonly how: string }
  /** Processes in the sandbox ended through no fault of their own; the sandbox continues. */
  | { readonly reason: 'ProgramsEnded'; readonly why: string }
  | { readonly reason: 'Killing'; readonly end: End }
  | { readonly reason: 'Failed'; readonly end: End; readonly why: string }
  | { readonly reason: 'Completed'; readonly end: End }
  | { readonly reason: 'BackOff'; readonly why: string; readonly until: number }
  /** The first failed start after a successful one. */
  | { readonly reason: 'StartFailed'; readonly why: string }
  | { readonly reason: 'Resized'; readonly from: number; readonly to: number }
  /** The pool has its size after it was created, was resized or had failures. */
  | { readonly reason: 'Filled'; readonly replicas: number }
  /** A pool of size 0 has lost its last unclaimed instance. */
  | { readonly reason: 'Emptied' }
  | { readonly reason: 'Changed'; readonly templateVersion?: string }
  | { readonly reason: 'RolledOut' }
  /** With `force`, also its running sandboxes. */
  | { readonly reason: 'Deleting'; readonly force: boolean }
  | { readonly reason: 'Deleted' }
  | { readonly reason: 'approval.requested'; readonly approvalId: string; readonly summary: string }
  | {
      readonly reason: 'approval.decided';
      readonly approvalId: string;
      readonly decision: 'approved' | 'denied';
      readonly by: string;
    }
  | { readonly reason: 'approval.consumed'; readonly approvalId: string };

/** An event of a pool lacks `sandboxId`; an event of an approval has an empty `poolName`. */
export type EventRecord = LifecycleEvent & {
  /** In ms since the epoch. */
  readonly at: number;
  readonly owner: Tenant;
  readonly poolName: string;
  readonly sandboxId?: InstanceId;
};

export interface NumberedEvent {
  readonly id: number;
  readonly event: EventRecord;
}

export interface EventBatch {
  readonly events: readonly NumberedEvent[];
  readonly missed: boolean;
  /** Set in the first batch for a follower from now on. */
  readonly begins?: number;
}

export type EventType = 'Normal' | 'Warning';

export const eventTypeOf = (event: LifecycleEvent): EventType => {
  switch (event.reason) {
    case 'Unhealthy':
    case 'NodeLeaving':
    case 'ContainerEnded':
    case 'ProgramsEnded':
    case 'Failed':
    case 'BackOff':
    case 'StartFailed':
    case 'approval.requested':
      return 'Warning';
    case 'Completed':
      return FAULTS.has(event.end.reason) && event.end.exitCode !== 0 ? 'Warning' : 'Normal';
    default:
      return 'Normal';
  }
};

export const eventMessageOf = (event: EventRecord): string =>
  (MESSAGES[event.reason] as (event: EventRecord) => string)(event);

const MESSAGES: {
  readonly [R in EventRecord['reason']]: (event: EventRecord & { readonly reason: R }) => string;
} = {
  Created: ({ sandboxId, poolName }) =>
    sandboxId === undefined ? `pool ${poolName} was created` : `created in pool ${poolName}`,
  Started: () => 'its main process is running',
  Ready: () => 'it is ready again',
  Unhealthy: ({ why }) => `it is not ready: ${why}`,
  NodeLeaving: ({ why }) => `it continues, but ${why}: end it soon, and claim another sandbox`,
  ContainerEnded: ({ container, how }) => wordsOfEnded({ [container]: how }),
  ProgramsEnded: ({ why }) => `the processes in it have ended: ${why}`,
  Claimed: ({ owner }) => `claimed by ${owner.team}/${owner.user}`,
  Paused: () => 'it is paused, and keeps its memory',
  Resumed: () => 'it was resumed',
  IdleTimeoutChanged: ({ idleTimeoutMs }) =>
    idleTimeoutMs === 0
      ? 'its idle timeout was disabled'
      : `its idle timeout is now ${formatDuration(idleTimeoutMs)}`,
  Killing: ({ end }) => `it is being ended: ${CAUSES[end.reason]}`,
  Failed: ({ why }) => `it did not start: ${why}`,
  Completed: ({ end }) => completionOf(end),
  BackOff: ({ poolName, until, why }) =>
    `pool ${poolName} starts no instances until ${new Date(until).toISOString()}: ${why}`,
  Recovered: ({ poolName }) => `pool ${poolName} starts instances again`,
  StartFailed: ({ poolName, why }) => `an instance of pool ${poolName} did not start: ${why}`,
  Resized: ({ poolName, from, to }) =>
    `pool ${poolName} was resized from ${from} to ${to} instances`,
  Filled: ({ poolName, replicas }) => `pool ${poolName} has all its ${replicas} instances`,
  Emptied: ({ poolName }) => `pool ${poolName} has no unclaimed instances left`,
  Changed: ({ poolName, templateVersion }) =>
    `pool ${poolName} has a new definition` +
    (templateVersion === undefined ? '' : `, of version ${templateVersion} of its template`),
  RolledOut: ({ poolName }) =>
    `all unclaimed instances of pool ${poolName} have its current definition`,
  Deleting: ({ poolName, force }) =>
    `pool ${poolName} is being deleted, ` +
    (force ? 'with its running sandboxes' : 'and its running sandboxes continue'),
  Deleted: ({ poolName }) => `pool ${poolName} was deleted`,
  'approval.requested': ({ summary }) => `a request waits for approval: ${summary}`,
  'approval.decided': ({ decision, by }) => `a request was ${decision} by ${by}`,
  'approval.consumed': () => 'the approved request was carried out',
};

const FAULTS: ReadonlySet<EndReason> = new Set([
  'claim-failed',
  'exited',
  'oom-killed',
  'killed',
  'lost',
  'container-ended',
  'start-failed',
  'start-timeout',
]);

const CAUSES: Readonly<Record<EndReason, string>> = {
  deleted: 'its deletion was requested',
  'force-deleted': 'its pool was deleted with force',
  'idle-timeout': 'it was idle for its idle timeout',
  'max-lifetime': 'it reached its maximum lifetime',
  'claim-failed': 'a file of its claim could not be written',
  exited: 'its main process ended',
  'oom-killed': 'its main process needed more memory than its limit',
  killed: 'its main process was killed',
  lost: 'its main process is gone',
  'container-ended': 'one of its containers ended before it was claimed',
  'start-failed': 'it did not start',
  'start-timeout': 'it did not become ready in time',
  retired: 'its pool no longer needs it',
};

const completionOf = ({ reason, exitCode }: End): string =>
  reason === 'exited' && exitCode !== null
    ? `it has ended: ${CAUSES[reason]} with exit code ${exitCode}`
    : `it has ended: ${CAUSES[reason]}`;
