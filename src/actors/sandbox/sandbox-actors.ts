import { createActor, setup, stopChild, type Actor, type AnyActorRef } from 'xstate';
import type { SandboxInput } from '../../machines/sandbox/events.ts';
import { sandboxMachine } from '../../machines/sandbox/machine.ts';

export type SandboxActor = Actor<typeof sandboxMachine>;

/**
 * Creates the actors of sandboxes. All share one actor system: a separate system would cost each
 * actor 2.4 KB of its 5.2.
 */
export class SandboxActors {
  readonly #parent = createActor(PARENT).start();

  /** Creates an actor without starting it. */
  make(input: SandboxInput): SandboxActor {
    return createActor(sandboxMachine, { input, parent: this.#parent, id: ID });
  }

  /** Detaches an actor: it sends and receives nothing more. */
  drop(actor: SandboxActor): void {
    this.#parent.send({ type: 'DROP', actor });
  }
}

/**
 * Id shared by all sandbox actors. The parent's machine remembers every event type that it has met,
 * and a child's done event contains its id.
 */
const ID = 'sandbox';
/** Ignores the ends of its children: hosts check their actors after each send. */
const PARENT = setup({
  types: { events: {} as { readonly type: 'DROP'; readonly actor: AnyActorRef } },
}).createMachine({ on: { DROP: { actions: stopChild(({ event }) => event.actor) }, '*': {} } });
