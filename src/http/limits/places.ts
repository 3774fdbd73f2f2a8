import { KeyedSemaphore } from '../../lib/keyed-semaphore.ts';
import { unavailable, type Refusal } from '../../model/refusals.ts';

export const overloaded = (): Refusal =>
  unavailable('too many requests are under way; try again shortly');

/**
 * How many operations may be under way at once; of one tenant at most half of them, of one kind a
 * quarter. Past that, requests are told to come back, so that those under way end soon. Operations
 * that mostly wait (a command, a stream) hold no place.
 */
export class Places {
  readonly #most: number;
  readonly #ofKind: KeyedSemaphore;
  readonly #ofTenant: KeyedSemaphore;
  #underWay = 0;

  constructor(most: number) {
    this.#most = most;
    this.#ofKind = new KeyedSemaphore(Math.ceil(most / 4));
    this.#ofTenant = new KeyedSemaphore(Math.ceil(most / 2));
  }

  get areTaken(): boolean {
    return this.#underWay >= this.#most;
  }

  /** Refuses with UNAVAILABLE where there is no place for it. */
  async within<T>(
    { operation, tenant }: { readonly operation: string; readonly tenant: string },
    work: () => Promise<T> | T,
  ): Promise<T> {
    const kind = `${operation} ${tenant}`;
    if (this.areTaken || !this.#ofKind.acquire(kind)) throw overloaded();
    if (!this.#ofTenant.acquire(tenant)) {
      this.#ofKind.release(kind);
      throw overloaded();
    }
    this.#underWay += 1;
    try {
      return await work();
    } finally {
      this.#underWay -= 1;
      this.#ofKind.release(kind);
      this.#ofTenant.release(tenant);
    }
  }
}
