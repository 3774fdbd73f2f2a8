import type { Clock } from '../contracts/clock.ts';
import type { SandboxEvent } from '../machines/sandbox-events.ts';
import type { InstanceId } from '../model/identifiers.ts';

/** What counts as activity in a sandbox. */
export const ACTIVITY: ReadonlySet<SandboxEvent['type']> = new Set<SandboxEvent['type']>(['ACTIVE', 'WORK_BEGAN', 'WORK_ENDED', 'AMENDED']);

const AGAIN_MS = 5_000;

/** Makes activity known beyond this replica, again and again for as long as something is under way in a sandbox. */
export class Busy {
  readonly #clock: Clock;
  readonly #touch: (id: InstanceId) => void;
  /** One for each sandbox in which this replica runs commands. */
  readonly #working = new Set<InstanceId>();
  #cancel: (() => void) | undefined;

  constructor({ clock, touch }: { readonly clock: Clock; readonly touch: (id: InstanceId) => void }) {
    this.#clock = clock;
    this.#touch = touch;
  }

  note(id: InstanceId, working: boolean): void {
    this.#touch(id);
    if (working) this.#working.add(id);
    else this.#working.delete(id);
    if (this.#working.size > 0 && !this.#cancel) this.#arm();
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#working.clear();
  }

  #arm(): void {
    this.#cancel = this.#clock.at(this.#clock.now() + AGAIN_MS, () => {
      for (const id of this.#working) this.#touch(id);
      this.#cancel = undefined;
      if (this.#working.size > 0) this.#arm();
    });
  }
}
