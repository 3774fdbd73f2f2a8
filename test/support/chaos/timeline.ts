import type { Moment, Sighting } from './history.ts';

/** Between which moments a revision of the store came to be, as far as the sightings prove. */
export class Timeline {
  readonly #sightings: readonly Sighting[];

  constructor(sightings: readonly Sighting[]) {
    this.#sightings = sightings;
  }

  /** It was not there before. */
  earliest(revision: number): Moment {
    return (
      this.#sightings[this.#first(({ revision: seen }) => seen >= revision) - 1]?.asked ?? -Infinity
    );
  }

  /** It was there from then on. */
  latest(revision: number): Moment {
    return (
      this.#sightings[this.#first(({ revision: seen }) => seen >= revision)]?.answered ?? Infinity
    );
  }

  /** Every revision that came to be after the moment is higher. */
  reachedBy(moment: Moment): number {
    return this.#sightings[this.#first(({ answered }) => answered > moment) - 1]?.revision ?? 0;
  }

  /**
   * Which revisions the store may have stood at, at some moment between the two: from the first to
   * the last.
   */
  between(from: Moment, to: Moment): { readonly first: number; readonly last: number } {
    return {
      first: this.reachedBy(from),
      last: this.#sightings[this.#first(({ asked }) => asked >= to)]?.revision ?? Infinity,
    };
  }

  /** Of the first that satisfies; all after it do. */
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
