import type { InstanceId } from '../../model/identifiers.ts';

/**
 * Holds an idle instance for one claim: no other claim of this process tries for it, and no pool
 * gives it up. It is released at the end of the block that declares it with `using`, whichever way
 * that block is left.
 */
export class HeldInstance implements Disposable {
  readonly id: InstanceId;
  /** How many of the pool were idle when it was acquired: it, and those that nobody held. */
  readonly idle: number;
  readonly #release: () => void;
  #work: Promise<unknown> | undefined;
  #isReleased = false;

  constructor({
    id,
    idle,
    release,
  }: {
    readonly id: InstanceId;
    readonly idle: number;
    readonly release: () => void;
  }) {
    this.id = id;
    this.idle = idle;
    this.#release = release;
  }

  /** Releases it when the work is over, and not at the end of the block. */
  holdDuring(work: Promise<unknown>): void {
    this.#work = work;
  }

  [Symbol.dispose](): void {
    const release = (): void => {
      if (this.#isReleased) return;
      this.#isReleased = true;
      this.#release();
    };
    if (this.#work) void this.#work.then(release, release);
    else release();
  }
}
