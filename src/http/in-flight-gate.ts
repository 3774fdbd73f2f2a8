import { unavailable, type Refusal } from '../model/refusals.ts';

/**
 * How many operations may be under way at once. Past that, requests are told to come back, cheaply, so that those under
 * way end soon and health is answered at once. Operations that mostly wait (a command, a stream) hold no place.
 */
export class InFlightGate {
  readonly #most: number;
  #underWay = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get full(): boolean { return this.#underWay >= this.#most; }

  /** Refuses with UNAVAILABLE where all places are taken. */
  async pass<T>(work: () => Promise<T> | T): Promise<T> {
    if (this.full) throw overloaded();
    this.#underWay += 1;
    try {
      return await work();
    } finally {
      this.#underWay -= 1;
    }
  }
}

export const overloaded = (): Refusal => unavailable('too many requests are under way; try again shortly');
