import type { ActorSummary, Transition } from '../../../model/inspection.ts';
import type {
  ActorNews,
  ActorsPage,
  ActorView,
  MachineView,
} from '../../../services/debug/debug-operations.ts';
import type { ServerEvent } from '../../reply/event-streams.ts';
import {
  cursorText,
  type ActorReportWire,
  type ActorSummaryWire,
  type ActorTransitionWire,
  type MachineReportWire,
} from './actor-schema.ts';
import { timestampOf } from '../../corridor/common-schema.ts';

export const presentActors = ({
  items,
  next,
  replica,
}: ActorsPage): {
  readonly items: readonly ActorSummaryWire[];
  readonly next?: string;
  readonly replica: string;
} => ({ items: items.map(presentSummary), next: next ? cursorText(next) : undefined, replica });

const presentSummary = ({
  kind,
  key,
  name,
  state,
  since,
  status,
  paused,
}: ActorSummary): ActorSummaryWire => ({
  kind,
  key,
  name,
  state,
  since: since > 0 ? timestampOf(since) : undefined,
  status,
  paused,
});

export const presentActor = (view: ActorView): ActorReportWire => ({
  ...presentSummary(view),
  why: [...view.why],
  leader: { ...view.leader },
  context: view.context,
  deadlines: view.deadlines.map(({ what, at, inMs }) => ({
    what,
    time: timestampOf(at),
    inMs: Math.round(inMs),
  })),
  transitions: view.transitions.map(presentTransition),
  pending: view.pending.map(({ intent, forMs, epoch }) => ({ intent, forMs, epoch })),
  record: {
    known: view.record.known,
    stored: view.record.stored,
    unread: view.record.unread,
    differs: view.record.differs.map(({ field, actor, record }) => ({ field, actor, record })),
  },
  seenBy: { replica: view.seenBy.replica, note: view.seenBy.note },
});

const presentTransition = ({
  number,
  at,
  event,
  cause,
  from,
  to,
  stoodMs,
}: Transition): ActorTransitionWire => ({
  number,
  time: timestampOf(at),
  event,
  cause: cause || undefined,
  from: from || undefined,
  to,
  stoodMs: Math.round(stoodMs),
});

/**
 * `reset` marks missed transitions; `seen-by` names the replica that reports from then on; `end`
 * ends the actor.
 */
export async function* presentActorNews(
  news: AsyncIterable<ActorNews>,
): AsyncGenerator<ServerEvent, void, undefined> {
  for await (const each of news) {
    if (each.kind === 'missed') yield { event: 'reset', data: {} };
    else if (each.kind === 'ended') yield { event: 'end', data: {} };
    else if (each.kind === 'seen-by')
      yield {
        event: 'seen-by',
        data: { replica: each.replica, note: each.note },
      };
    else yield { id: String(each.transition.number), data: presentTransition(each.transition) };
  }
}

export const presentMachine = ({ kind, actors, states }: MachineView): MachineReportWire => ({
  kind,
  actors,
  states: states.map(({ path, type, initial, count, onEntry, ways }) => ({
    path,
    type,
    initial,
    count,
    onEntry: [...onEntry],
    ways: ways.map(({ actions, ...way }) => ({ ...way, actions: [...actions] })),
  })),
});
