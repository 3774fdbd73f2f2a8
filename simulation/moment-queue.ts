/** Moments in the order in which they came; taken from either end. */
export class MomentQueue {
  #moments = new Float64Array(256);
  #start = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Infinity where there is none. */
  get first(): number {
    return this.#size === 0 ? Number.POSITIVE_INFINITY : this.at(0);
  }

  /** The one at that place, from 0. */
  at(place: number): number {
    return this.#moments[(this.#start + place) & (this.#moments.length - 1)] ?? 0;
  }

  add(moment: number): void {
    if (this.#size === this.#moments.length) this.#grow();
    this.#moments[(this.#start + this.#size++) & (this.#moments.length - 1)] = moment;
  }

  takeFirst(): number {
    const first = this.first;
    this.#start = (this.#start + 1) & (this.#moments.length - 1);
    this.#size -= 1;
    return first;
  }

  takeLast(): number {
    const last = this.at(this.#size - 1);
    this.#size -= 1;
    return last;
  }

  #grow(): void {
    const larger = new Float64Array(this.#moments.length * 2);
    for (let place = 0; place < this.#size; place++) larger[place] = this.at(place);
    this.#moments = larger;
    this.#start = 0;
  }
}
