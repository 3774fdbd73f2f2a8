import { createActor, setup, stopChild, type Actor, type AnyActorRef } from 'xstate';
import type { SandboxInput } from '../../machines/sandbox/events.ts';
import { sandboxMachine } from '../../machines/sandbox/machine.ts';

export type SandboxActor = Actor<typeof sandboxMachine>;

/** All share one actor system: a separate one would cost each actor 2.4 KB of its 5.2. */
export class SandboxActors {
  readonly #parent = createActor(PARENT).start();

  make(input: SandboxInput): SandboxActor {
    return createActor(sandboxMachine, { input, parent: this.#parent, id: ID });
  }

  drop(actor: SandboxActor): void {
    this.#parent.send({ type: 'DROP', actor });
  }
}

/**
 * Shared by all sandbox actors: the parent's machine remembers every event type that it has met,
 * and a child's done event contains its id.
 */
const ID = 'sandbox';
/** Hosts check their actors after each send. */
const PARENT = setup({
  types: { events: {} as { readonly type: 'DROP'; readonly actor: AnyActorRef } },
}).createMachine({ on: { DROP: { actions: stopChild(({ event }) => event.actor) }, '*': {} } });
