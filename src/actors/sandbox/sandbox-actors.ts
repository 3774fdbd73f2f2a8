import { createActor, setup, stopChild, type Actor, type AnyActorRef } from 'xstate';
import type { SandboxInput } from '../../machines/sandbox/events.ts';
import { sandboxMachine } from '../../machines/sandbox/machine.ts';

export type SandboxActor = Actor<typeof sandboxMachine>;

/**
 * Makes the actors of sandboxes. They share one actor system: one of its own would cost each 2.4 KB
 * of its 5.2.
 */
export class SandboxActors {
  readonly #parent = createActor(PARENT).start();

  /** Not started yet. */
  make(input: SandboxInput): SandboxActor {
    return createActor(sandboxMachine, { input, parent: this.#parent, id: ID });
  }

  /** It is heard no more, and told nothing. */
  drop(actor: SandboxActor): void {
    this.#parent.send({ type: 'DROP', actor });
  }
}

/**
 * Id of every sandbox's actor, the same for all: the parent's machine remembers every type of event
 * that it ever met, and a child's end carries its id.
 */
const ID = 'sandbox';
/** Hears how its children end, and minds nothing: they are looked at after each send. */
const PARENT = setup({
  types: { events: {} as { readonly type: 'DROP'; readonly actor: AnyActorRef } },
}).createMachine({ on: { DROP: { actions: stopChild(({ event }) => event.actor) }, '*': {} } });
