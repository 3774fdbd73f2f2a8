/** Moments, of which the earliest is always at hand. */
export class MomentHeap {
  #moments = new Float64Array(1_024);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Infinity where there is none. */
  get first(): number {
    return this.#size === 0
      ? Number.POSITIVE_INFINITY
      : (this.#moments[0] ?? Number.POSITIVE_INFINITY);
  }

  add(moment: number): void {
    if (this.#size === this.#moments.length) this.#grow();
    const heap = this.#moments;
    let at = this.#size++;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent] ?? 0;
      if (above <= moment) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = moment;
  }

  takeFirst(): number {
    const heap = this.#moments;
    const first = this.first;
    const moved = heap[--this.#size] ?? 0;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= this.#size) break;
      if (child + 1 < this.#size && (heap[child + 1] ?? 0) < (heap[child] ?? 0)) child += 1;
      const below = heap[child] ?? 0;
      if (below >= moved) break;
      heap[at] = below;
      at = child;
    }
    heap[at] = moved;
    return first;
  }

  #grow(): void {
    const larger = new Float64Array(this.#moments.length * 2);
    larger.set(this.#moments);
    this.#moments = larger;
  }
}
