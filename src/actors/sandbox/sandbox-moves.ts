import { isOurDoing, failureOf } from '../../machines/sandbox/arithmetic.ts';
import type { SandboxContext, SandboxEvent } from '../../machines/sandbox/events.ts';
import type { Claim } from '../../model/sandbox.ts';
import type { EventRecord, LifecycleEvent } from '../../model/event.ts';
import type { SnapshotFrom } from 'xstate';
import type { Clock } from '../../contracts/clock.ts';
import type { sandboxMachine } from '../../machines/sandbox/machine.ts';
import { shardOf } from '../../model/shards.ts';
import type { EventSink } from '../runtime/event-feed.ts';
import { stateOf } from './sandbox-snapshot.ts';
import type { Activity } from '../../contracts/coordination/activity.ts';

interface EventRecorderDeps {
  readonly events: EventSink;
  readonly clock: Clock;
  readonly leads: (shard: number) => boolean;
}

export class EventRecorder {
  readonly #deps: EventRecorderDeps;

  constructor(deps: EventRecorderDeps) {
    this.#deps = deps;
  }

  moved(
    before: Moment,
    { value, context, status }: SnapshotFrom<typeof sandboxMachine>,
    event: SandboxEvent,
  ): void {
    if (status === 'error') return;
    for (const lifecycleEvent of lifecycleEventsOf(
      before,
      { state: stateOf(value), context },
      event,
    ))
      this.record(context, lifecycleEvent, { done: !SEEN.has(event.type), known: before.context });
  }

  /** `done`: this replica caused the event. `known`: context before the event. */
  record(
    context: SandboxContext,
    lifecycleEvent: LifecycleEvent,
    { done, known }: { readonly done: boolean; readonly known?: SandboxContext },
  ): void {
    const { events, clock, leads } = this.#deps;
    const event = eventOf(lifecycleEvent, context, clock.now());
    if (!event) return;
    const shard = shardOf(context.poolUid);
    events.note(event, {
      shard,
      key: keyOf(lifecycleEvent, context, known),
      kept: isKept(lifecycleEvent, context),
      // a spawner reports this only once, when its daemon starts and does not lead yet
      ours: done || lifecycleEvent.reason === 'ProgramsEnded' || leads(shard),
    });
  }
}

/** Received by actors on every replica. This replica causes all others. */
const SEEN: ReadonlySet<SandboxEvent['type']> = new Set<SandboxEvent['type']>(['FACT', 'DEADLINE']);

const ACTIVITY: ReadonlySet<SandboxEvent['type']> = new Set<SandboxEvent['type']>([
  'ACTIVE',
  'WORK_BEGAN',
  'WORK_ENDED',
  'AMENDED',
]);

interface Happened {
  readonly event: SandboxEvent;
  readonly before: SandboxContext;
  readonly after: SandboxContext;
}

export const publishActivity = (
  activity: Pick<Activity, 'touch' | 'work'>,
  { event, before, after: { id, working, record } }: Happened,
): void => {
  if (!ACTIVITY.has(event.type)) return;
  activity.touch(id, record?.claim?.idleTimeoutMs ?? 0);
  if (working > 0 || before.working > 0) activity.work(id, working > 0);
};

type SandboxHappened = SandboxEvent | { readonly type: 'ORDERED' | 'FOUND' | 'THREW' };

/** From a small fixed vocabulary: without ids, times or user text. */
export const sandboxCauseOf = (event: SandboxHappened): string => {
  switch (event.type) {
    case 'FACT':
      return `record ${event.fact.record?.state ?? 'gone'}, process ${event.fact.vitals.kind}`;
    case 'END':
    case 'EXPIRED':
      return event.reason;
    case 'ORDERED':
      return 'its pool asked for it';
    case 'FOUND':
      return 'the driver reported it';
    case 'CLAIM':
      return 'a request';
    default:
      return '';
  }
};

interface Moment {
  readonly state: string;
  readonly context: SandboxContext;
}

const NOTHING: readonly LifecycleEvent[] = [];

const lifecycleEventsOf = (
  before: Moment,
  after: Moment,
  event: SandboxEvent,
): readonly LifecycleEvent[] => {
  const programsEnded = event.type === 'FACT' ? event.fact.programsEnded : undefined;
  if (event.type !== 'AMENDED' && programsEnded === undefined && isAlike(before, after))
    return NOTHING;
  const [was, is] = [before.context, after.context];
  const found: LifecycleEvent[] = [];
  if (programsEnded !== undefined) found.push({ reason: 'ProgramsEnded', why: programsEnded });
  for (const [container, how] of Object.entries(is.endedContainers ?? {})) {
    if (was.endedContainers?.[container] === undefined)
      found.push({ reason: 'ContainerEnded', container, how });
  }
  found.push(...availabilityEvents(was, after, event));
  if (before.state !== 'running' && after.state === 'running') found.push({ reason: 'Claimed' });
  if (event.type === 'AMENDED' && is.record?.claim)
    found.push(...changesOf(was.record?.claim, is.record.claim));
  found.push(...endEvents(before, after, event));
  return found;
};

const isAlike = (before: Moment, after: Moment): boolean => {
  const [was, is] = [before.context, after.context];
  return (
    before.state === after.state &&
    was.startedAt === is.startedAt &&
    was.availableAt === is.availableAt &&
    was.gone === is.gone &&
    was.endedContainers === is.endedContainers
  );
};

const availabilityEvents = (
  was: SandboxContext,
  { state, context: is }: Moment,
  event: SandboxEvent,
): readonly LifecycleEvent[] => {
  if (was.startedAt !== is.startedAt) return [{ reason: 'Started' }];
  if (was.availableAt === is.availableAt || is.gone || is.end || is.endedContainers) return NOTHING;
  return [is.availableAt === undefined ? unhealthyOr(state, event) : { reason: 'Ready' }];
};

/** A failed start gives only `Failed`, without `Killing` and `Completed`. */
const endEvents = (
  before: Moment,
  after: Moment,
  event: SandboxEvent,
): readonly LifecycleEvent[] => {
  const [was, is] = [before.context, after.context];
  const { end } = is;
  const found: LifecycleEvent[] = [];
  if (before.state !== 'stopping' && after.state === 'stopping' && end) {
    if (before.state === 'starting' && end.reason !== 'retired' && !isOurDoing(end))
      return [{ reason: 'Failed', end, why: failureOf(is, event) }];
    if (!is.gone) found.push({ reason: 'Killing', end });
  }
  if (!was.gone && is.gone)
    found.push({
      reason: 'Completed',
      end: end ?? { reason: 'lost', exitCode: is.gone.exitCode },
    });
  return found;
};

/** Clients move `endsAt` too often for an event. */
const changesOf = (before: Claim | undefined, after: Claim): readonly LifecycleEvent[] => {
  if (before?.pausedAt !== after.pausedAt)
    return [{ reason: after.pausedAt === undefined ? 'Resumed' : 'Paused' }];
  if (before?.endsAt !== after.endsAt) return [];
  return [{ reason: 'IdleTimeoutChanged', idleTimeoutMs: after.idleTimeoutMs }];
};

const eventOf = (
  lifecycleEvent: LifecycleEvent,
  context: SandboxContext,
  now: number,
): EventRecord | undefined => {
  const record = context.record ?? context.launchOrder?.record;
  if (!record) return undefined;
  const claim = context.record?.claim;
  // Not a spread, which would cost a claim 2.5 µs.
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

/** Only if neither the record nor history shows the event otherwise. */
const isKept = ({ reason }: LifecycleEvent, { record }: SandboxContext): boolean =>
  record?.claim !== undefined &&
  (reason === 'IdleTimeoutChanged' ||
    reason === 'Paused' ||
    reason === 'Resumed' ||
    reason === 'Unhealthy' ||
    reason === 'NodeLeaving' ||
    reason === 'Ready' ||
    reason === 'Killing' ||
    reason === 'ContainerEnded' ||
    reason === 'ProgramsEnded');

/** Equal on every replica; undefined if replicas see it at different times. */
const keyOf = (
  lifecycleEvent: LifecycleEvent,
  { id, record, since }: SandboxContext,
  known?: SandboxContext,
): string | undefined => {
  const { reason } = lifecycleEvent;
  switch (reason) {
    case 'ContainerEnded':
      return `${id}/${reason}/${lifecycleEvent.container}`;
    case 'Ready':
    case 'NodeLeaving':
    case 'Unhealthy':
      return since === undefined || since === known?.since ? undefined : `${id}/${reason}/${since}`;
    case 'ProgramsEnded':
      return undefined;
    case 'Paused':
    case 'Resumed':
    case 'IdleTimeoutChanged':
      return `${id}/${reason}/${record?.revision ?? ''}`;
    default:
      return `${id}/${reason}`; // once per sandbox
  }
};

const unhealthyOr = (state: string, event: SandboxEvent): LifecycleEvent => {
  const isLeaving =
    event.type === 'FACT' &&
    event.fact.vitals.kind === 'unavailable' &&
    event.fact.vitals.nodeLeaving === true;
  const why = whyUnhealthy(event);
  return state === 'running' && isLeaving
    ? { reason: 'NodeLeaving', why }
    : { reason: 'Unhealthy', why };
};

const whyUnhealthy = (event: SandboxEvent): string =>
  event.type === 'FACT' && event.fact.vitals.kind === 'unavailable'
    ? event.fact.vitals.reason
    : 'it does not answer';
