import { createActor, type Actor } from 'xstate';
import type {
  GroupContext,
  GroupEvent,
  GroupIntent,
  GroupSpec,
} from '../../src/machines/autoscaling/group-events.ts';
import { autoscalingGroupMachine } from '../../src/machines/autoscaling/group-machine.ts';
import { NO_MEMORY } from '../../src/machines/autoscaling/memory.ts';
import { aGroup, aRule } from './autoscaling-examples.ts';

export const theWords = (parts: Partial<GroupSpec> = {}): GroupSpec => ({
  group: aGroup(),
  rules: [aRule()],
  memory: NO_MEMORY,
  ...parts,
});

/** An actor, and what it asked for and was not yet taken. */
export class AnAutoscalingGroup {
  readonly asked: GroupIntent[] = [];
  readonly #actor: Actor<typeof autoscalingGroupMachine>;

  constructor(words: GroupSpec = theWords()) {
    this.#actor = createActor(autoscalingGroupMachine, { input: words });
    this.#actor.on('*', (intent) => {
      this.asked.push(intent);
    });
    this.#actor.start();
  }

  get context(): GroupContext {
    return this.#actor.getSnapshot().context;
  }

  /** As `enabled.scaling.up`. */
  get state(): string {
    const path = (value: unknown): string =>
      typeof value === 'object' && value !== null
        ? Object.entries(value)
            .map(([key, inner]) => `${key}.${path(inner)}`)
            .join()
        : String(value);
    return path(this.#actor.getSnapshot().value);
  }

  send(...events: readonly GroupEvent[]): this {
    for (const event of events) this.#actor.send(event);
    return this;
  }

  taken(): readonly GroupIntent[] {
    return this.asked.splice(0);
  }
}
