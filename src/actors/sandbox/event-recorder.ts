import type { SnapshotFrom } from 'xstate';
import type { Clock } from '../../contracts/clock.ts';
import type { SandboxContext, SandboxEvent } from '../../machines/sandbox/events.ts';
import type { sandboxMachine } from '../../machines/sandbox/machine.ts';
import type { LifecycleEvent } from '../../model/event.ts';
import { shardOf } from '../../model/shards.ts';
import type { EventSink } from '../runtime/event-feed.ts';
import { eventOf, lifecycleEventsOf, isKept, keyOf, type Moment } from './lifecycle-events.ts';
import { stateOf } from './sandbox-snapshot.ts';

export interface EventRecorderDeps {
  readonly events: EventSink;
  readonly clock: Clock;
  readonly leads: (shard: number) => boolean;
}

/** Notes what the moves of sandboxes mean to their owners. */
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

  /** `done`: here, and not only seen. `known`: what was known before. */
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
      ours: done || leads(shard),
    });
  }
}

/** Events that every replica's actor is sent; all else comes of what this one does. */
const SEEN: ReadonlySet<SandboxEvent['type']> = new Set<SandboxEvent['type']>(['FACT', 'DEADLINE']);
