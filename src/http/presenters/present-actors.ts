import type { ActorSummary, Transition } from '../../model/inspection.ts';
import type { ActorsPage, ActorView, MachineView } from '../../operations/debug-operations.ts';
import type { ServerEvent } from '../event-streams.ts';
import { cursorText, type ActorReportWire, type ActorSummaryWire, type ActorTransitionWire, type MachineReportWire } from '../schemas/debug-actors.ts';
import { timestampOf } from './timestamp.ts';

export const presentActors = ({ items, next, replica }: ActorsPage): { readonly items: readonly ActorSummaryWire[]; readonly next?: string; readonly replica: string } =>
  ({ items: items.map(presentSummary), ...(next ? { next: cursorText(next) } : {}), replica });

const presentSummary = ({ kind, key, name, state, since, status }: ActorSummary): ActorSummaryWire =>
  ({ kind, key, name, state, ...(since > 0 ? { since: timestampOf(since) } : {}), ...(status === undefined ? {} : { status }) });

export const presentActor = (view: ActorView): ActorReportWire => ({
  ...presentSummary(view),
  why: [...view.why],
  leader: { ...view.leader },
  context: view.context,
  deadlines: view.deadlines.map(({ what, at, inMs }) => ({ what, time: timestampOf(at), inMs: Math.round(inMs) })),
  transitions: view.transitions.map(presentTransition),
  pending: view.pending.map(({ intent, forMs, epoch }) => ({ intent, forMs, ...(epoch === undefined ? {} : { epoch }) })),
  record: {
    known: view.record.known,
    ...(view.record.stored ? { stored: view.record.stored } : {}),
    ...(view.record.unread === undefined ? {} : { unread: view.record.unread }),
    differs: view.record.differs.map(({ field, actor, record }) => ({ field, actor, record })),
  },
  seenBy: { replica: view.seenBy.replica, ...(view.seenBy.note === undefined ? {} : { note: view.seenBy.note }) },
});

const presentTransition = ({ number, at, event, cause, from, to, stoodMs }: Transition): ActorTransitionWire =>
  ({ number, time: timestampOf(at), event, ...(cause === '' ? {} : { cause }), ...(from === '' ? {} : { from }), to, stoodMs: Math.round(stoodMs) });

/** One message each; `reset` where some before them were missed. */
export async function* presentTransitions(transitions: AsyncIterable<{ readonly transition: Transition; readonly missed: boolean }>): AsyncGenerator<ServerEvent, void, undefined> {
  for await (const { transition, missed } of transitions) {
    if (missed) yield { event: 'reset', data: {} };
    yield { id: String(transition.number), data: presentTransition(transition) };
  }
}

export const presentMachine = ({ kind, actors, states }: MachineView): MachineReportWire => ({
  kind, actors,
  states: states.map(({ path, type, initial, count, onEntry, ways }) => ({
    path, type, ...(initial === undefined ? {} : { initial }), count, onEntry: [...onEntry], ways: ways.map(({ actions, ...way }) => ({ ...way, actions: [...actions] })),
  })),
});
