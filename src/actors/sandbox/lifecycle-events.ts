import { isOurDoing } from '../../machines/sandbox/arithmetic.ts';
import type { SandboxContext, SandboxEvent } from '../../machines/sandbox/events.ts';
import { failureOf } from '../../machines/sandbox/knowledge.ts';
import type { Claim } from '../../model/sandbox.ts';
import type { EventRecord, LifecycleEvent } from '../../model/event.ts';

/** Describes what an actor showed before an event, or shows after it. */
export interface Moment {
  /** The machine's top-level state. */
  readonly state: string;
  readonly context: SandboxContext;
}

const NOTHING: readonly LifecycleEvent[] = [];

/** Tells what a move of the machine means to its owner; most mean nothing. */
export const lifecycleEventsOf = (
  before: Moment,
  after: Moment,
  event: SandboxEvent,
): readonly LifecycleEvent[] => {
  const [was, is] = [before.context, after.context];
  if (
    before.state === after.state &&
    was.startedAt === is.startedAt &&
    was.availableAt === is.availableAt &&
    was.gone === is.gone &&
    was.endedContainers === is.endedContainers &&
    event.type !== 'AMENDED'
  )
    return NOTHING;
  const found: LifecycleEvent[] = [];
  const { end } = is;
  for (const [container, how] of Object.entries(is.endedContainers ?? {})) {
    if (was.endedContainers?.[container] === undefined)
      found.push({ reason: 'ContainerEnded', container, how });
  }
  if (was.startedAt !== is.startedAt) found.push({ reason: 'Started' });
  else if (was.availableAt !== is.availableAt && !is.gone && !end && !is.endedContainers)
    found.push(
      is.availableAt === undefined
        ? { reason: 'Unhealthy', why: whyUnhealthy(event) }
        : { reason: 'Ready' },
    );
  if (before.state !== 'running' && after.state === 'running') found.push({ reason: 'Claimed' });
  if (event.type === 'AMENDED' && is.record?.claim)
    found.push(...changesOf(was.record?.claim, is.record.claim));
  if (before.state !== 'stopping' && after.state === 'stopping' && end) {
    if (before.state === 'starting' && end.reason !== 'retired' && !isOurDoing(end))
      return [...found, { reason: 'Failed', end, why: failureOf(is, event) }];
    if (!is.gone) found.push({ reason: 'Killing', end });
  }
  if (!was.gone && is.gone)
    found.push({
      reason: 'Completed',
      end: end ?? { reason: 'lost', exitCode: is.gone.exitCode },
    });
  return found;
};

/** The end of a claim is moved so often by those who use it that no event tells of that. */
const changesOf = (before: Claim | undefined, after: Claim): readonly LifecycleEvent[] => {
  if (before?.pausedAt !== after.pausedAt)
    return [{ reason: after.pausedAt === undefined ? 'Resumed' : 'Paused' }];
  if (before?.endsAt !== after.endsAt) return [];
  return [{ reason: 'IdleTimeoutChanged', idleTimeoutMs: after.idleTimeoutMs }];
};

/** As an event of that instance: at the moment that its record will show, where it does. */
export const eventOf = (
  lifecycleEvent: LifecycleEvent,
  context: SandboxContext,
  now: number,
): EventRecord | undefined => {
  const record = context.record ?? context.launchOrder?.record;
  if (!record) return undefined;
  const claim = context.record?.claim;
  // Not by spreading, which costs a claim 2.5 µs.
  return Object.assign(
    {
      at: momentOf(lifecycleEvent, context) ?? now,
      owner: claim?.owner ?? record.poolOwner,
      poolName: record.poolName,
      sandboxId: record.id,
    },
    lifecycleEvent,
  );
};

const momentOf = (
  { reason }: LifecycleEvent,
  { record, launchOrder, startedAt, gone }: SandboxContext,
): number | undefined => {
  switch (reason) {
    case 'Created':
      return (record ?? launchOrder?.record)?.createdAt;
    case 'Started':
      return startedAt;
    case 'Claimed':
      return record?.claim?.claimedAt;
    case 'Completed':
      return gone?.at;
    default:
      return undefined;
  }
};

/**
 * Whether the event is to be kept: history will show its sandbox, and neither record nor history
 * shows the event anyway.
 */
export const isKept = ({ reason }: LifecycleEvent, { record }: SandboxContext): boolean =>
  record?.claim !== undefined &&
  (reason === 'IdleTimeoutChanged' ||
    reason === 'Paused' ||
    reason === 'Resumed' ||
    reason === 'Unhealthy' ||
    reason === 'Ready' ||
    reason === 'Killing' ||
    reason === 'ContainerEnded');

/**
 * Names it, alike on each replica; undefined for what each sees at a moment of its own. `known`:
 * before, where there was a before.
 */
export const keyOf = (
  lifecycleEvent: LifecycleEvent,
  { id, record, since }: SandboxContext,
  known?: SandboxContext,
): string | undefined => {
  const { reason } = lifecycleEvent;
  switch (reason) {
    case 'ContainerEnded':
      return `${id}/${reason}/${lifecycleEvent.container}`;
    case 'Ready':
    case 'Unhealthy':
      return since === undefined || since === known?.since ? undefined : `${id}/${reason}/${since}`;
    case 'Paused':
    case 'Resumed':
    case 'IdleTimeoutChanged':
      return `${id}/${reason}/${record?.revision ?? ''}`;
    default:
      return `${id}/${reason}`; // once in its life
  }
};

const whyUnhealthy = (event: SandboxEvent): string =>
  event.type === 'FACT' && event.fact.vitals.kind === 'unavailable'
    ? event.fact.vitals.reason
    : 'it does not answer';
