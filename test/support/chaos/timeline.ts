import type { Moment, Sighting } from './history.ts';

/** By the sightings. */
export class Timeline {
  readonly #sightings: readonly Sighting[];

  constructor(sightings: readonly Sighting[]) {
    this.#sightings = sightings;
  }

  earliest(revision: number): Moment {
    return (
      this.#sightings[this.#first(({ revision: seen }) => seen >= revision) - 1]?.asked ?? -Infinity
    );
  }

  latest(revision: number): Moment {
    return (
      this.#sightings[this.#first(({ revision: seen }) => seen >= revision)]?.answered ?? Infinity
    );
  }

  /** Every revision after the moment is higher. */
  reachedBy(moment: Moment): number {
    return this.#sightings[this.#first(({ answered }) => answered > moment) - 1]?.revision ?? 0;
  }

  /** At some moment between the two. */
  between(from: Moment, to: Moment): { readonly first: number; readonly last: number } {
    return {
      first: this.reachedBy(from),
      last: this.#sightings[this.#first(({ asked }) => asked >= to)]?.revision ?? Infinity,
    };
  }

  /** All later ones satisfy `is` too. */
  #first(is: (sighting: Sighting) => boolean): number {
    let [low, high] = [0, this.#sightings.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const sighting = this.#sightings[middle];
      if (sighting && is(sighting)) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
