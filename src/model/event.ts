import { formatDuration } from './durations.ts';
import type { InstanceId } from './identifiers.ts';
import { wordsOfEnded, type End, type EndReason } from './sandbox.ts';
import type { Tenant } from './tenant.ts';

/**
 * Describes what can happen, by a reason in one word, as Kubernetes' events have it, and what its
 * message is made of.
 */
export type LifecycleEvent =
  | { readonly reason: 'Created' | 'Started' | 'Ready' | 'Recovered' }
  /** It is alive and can't be claimed. */
  | { readonly reason: 'Unhealthy'; readonly why: string }
  /** Its node is to be emptied; a claimed sandbox goes on there until it ends. */
  | { readonly reason: 'NodeLeaving'; readonly why: string }
  | { readonly reason: 'Claimed' }
  | { readonly reason: 'Paused' | 'Resumed' }
  | { readonly reason: 'IdleTimeoutChanged'; readonly idleTimeoutMs: number }
  /** A container beside the first has ended by itself; the sandbox goes on. */
  | { readonly reason: 'ContainerEnded'; readonly container: string; readonly how: string }
  /** Processes that were started in it ended through no doing of theirs; the sandbox goes on. */
  | { readonly reason: 'ProgramsEnded'; readonly why: string }
  /** It is being ended. */
  | { readonly reason: 'Killing'; readonly end: End }
  /** It did not come up. */
  | { readonly reason: 'Failed'; readonly end: End; readonly why: string }
  /** Nothing of it runs any more. */
  | { readonly reason: 'Completed'; readonly end: End }
  /** A pool starts nothing for a while, since too many starts failed. */
  | { readonly reason: 'BackOff'; readonly why: string; readonly until: number }
  /** The first start of a pool that fails after one that did not. */
  | { readonly reason: 'StartFailed'; readonly why: string }
  /** A pool should have another number of instances, by hand. */
  | { readonly reason: 'Resized'; readonly from: number; readonly to: number }
  /** A pool has all instances that it should have, after it was made, resized or had trouble. */
  | { readonly reason: 'Filled'; readonly replicas: number }
  /** A pool that should have no instance has none that is unclaimed. */
  | { readonly reason: 'Emptied' }
  /** Says that what a pool launches is defined anew. */
  | { readonly reason: 'Changed'; readonly templateVersion?: string }
  /** Each unclaimed instance of a pool is of its current definition. */
  | { readonly reason: 'RolledOut' }
  /** A pool is being deleted, with `force` its running sandboxes too. */
  | { readonly reason: 'Deleting'; readonly force: boolean }
  /** A pool is gone. */
  | { readonly reason: 'Deleted' }
  /** A request waits for a person. */
  | { readonly reason: 'approval.requested'; readonly approvalId: string; readonly summary: string }
  | {
      readonly reason: 'approval.decided';
      readonly approvalId: string;
      readonly decision: 'approved' | 'denied';
      readonly by: string;
    }
  /** The effect of a grant was brought about. */
  | { readonly reason: 'approval.consumed'; readonly approvalId: string };

/**
 * One thing that happened to a sandbox; to a pool where there is no sandboxId; to an approval where
 * poolName is empty.
 */
export type EventRecord = LifecycleEvent & {
  /** ms since the epoch. */
  readonly at: number;
  readonly owner: Tenant;
  readonly poolName: string;
  readonly sandboxId?: InstanceId;
};

/** An event and its place in the order of all. */
export interface NumberedEvent {
  readonly id: number;
  readonly event: EventRecord;
}

export interface EventBatch {
  readonly events: readonly NumberedEvent[];
  /** Some before these are not known any more. */
  readonly missed: boolean;
  /** In the first of those who follow from now on: what has a higher number is still to come. */
  readonly begins?: number;
}

export type EventType = 'Normal' | 'Warning';

/** Whether somebody should look. */
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

/** For people. */
export const eventMessageOf = (event: EventRecord): string => {
  switch (event.reason) {
    case 'Created':
      return event.sandboxId === undefined
        ? `pool ${event.poolName} was created`
        : `created in pool ${event.poolName}`;
    case 'Started':
      return 'its main process runs';
    case 'Ready':
      return 'it can be used again';
    case 'Unhealthy':
      return `it can not be used: ${event.why}`;
    case 'NodeLeaving':
      return `it goes on, but ${event.why}: end it soon, and claim another`;
    case 'ContainerEnded':
      return wordsOfEnded({ [event.container]: event.how });
    case 'ProgramsEnded':
      return `the processes that ran in it have ended: ${event.why}`;
    case 'Claimed':
      return `claimed by ${event.owner.team}/${event.owner.user}`;
    case 'Paused':
      return 'it stands still, with what it has in memory';
    case 'Resumed':
      return 'it goes on';
    case 'IdleTimeoutChanged':
      return event.idleTimeoutMs === 0
        ? 'its idle timeout was switched off'
        : `its idle timeout is ${formatDuration(event.idleTimeoutMs)} now`;
    case 'Killing':
      return `it is ended: ${CAUSES[event.end.reason]}`;
    case 'Failed':
      return `it did not start: ${event.why}`;
    case 'Completed':
      return completionOf(event.end);
    case 'BackOff':
      return (
        `pool ${event.poolName} starts nothing until ` +
        `${new Date(event.until).toISOString()}: ${event.why}`
      );
    case 'Recovered':
      return `pool ${event.poolName} starts instances again`;
    case 'StartFailed':
      return `an instance of pool ${event.poolName} did not start: ${event.why}`;
    case 'Resized':
      return `pool ${event.poolName} should have ${event.to} instances, no longer ${event.from}`;
    case 'Filled':
      return `pool ${event.poolName} has all its ${event.replicas} instances`;
    case 'Emptied':
      return `pool ${event.poolName} has no unclaimed instance any more`;
    case 'Changed':
      return (
        `pool ${event.poolName} launches another definition now` +
        (event.templateVersion === undefined
          ? ''
          : `, of version ${event.templateVersion} of its template`)
      );
    case 'RolledOut':
      return `each unclaimed instance of pool ${event.poolName} is of its current definition`;
    case 'Deleting':
      return (
        `pool ${event.poolName} is being deleted, ` +
        `${event.force ? 'and its running sandboxes with it' : 'its running sandboxes stay'}`
      );
    case 'Deleted':
      return `pool ${event.poolName} is gone`;
    case 'approval.requested':
      return `a request waits for a person: ${event.summary}`;
    case 'approval.decided':
      return `a request was ${event.decision} by ${event.by}`;
    case 'approval.consumed':
      return 'the request that was approved was carried out';
  }
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
  deleted: 'its deletion was asked for',
  'force-deleted': 'its pool was deleted by force',
  'idle-timeout': 'nothing happened in it for its idle timeout',
  'max-lifetime': 'it reached its longest lifetime',
  'claim-failed': 'a file of its claim could not be written',
  exited: 'its main process ended',
  'oom-killed': 'its main process needed more memory than its limit',
  killed: 'its main process was killed',
  lost: 'its main process is gone',
  'container-ended': 'one of its containers ended while nobody had claimed it',
  'start-failed': 'it did not start',
  'start-timeout': 'it did not become ready in time',
  retired: 'its pool does not need it any more',
};

const completionOf = ({ reason, exitCode }: End): string =>
  reason === 'exited' && exitCode !== null
    ? `it has ended: ${CAUSES[reason]} with exit code ${exitCode}`
    : `it has ended: ${CAUSES[reason]}`;
