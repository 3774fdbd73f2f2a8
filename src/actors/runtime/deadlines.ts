import type { Clock } from '../../contracts/clock.ts';

interface Armed {
  readonly at: number;
  readonly key: string;
}

const SLICE_MS = 5;
const SLACK = 64;

/**
 * One absolute deadline a key, in one heap with one timer. A deadline that moves later leaves its
 * old entry behind as a harmless early call; the heap is rebuilt when such leftovers outnumber the
 * living. What is due is handed out in slices of about 5 ms by the clock, so that a thousand
 * deadlines at once don't block the loop.
 */
export class Deadlines {
  readonly #clock: Clock;
  readonly #due: (key: string, now: number, at: number) => void;
  readonly #current = new Map<string, number>();
  #heap: Armed[] = [];
  #timer: { readonly at: number; readonly cancel: () => void } | undefined;
  #slice: NodeJS.Immediate | undefined;
  #stopped = false;

  constructor(clock: Clock, due: (key: string, now: number, at: number) => void) {
    this.#clock = clock;
    this.#due = due;
  }

  get size(): number {
    return this.#current.size;
  }

  /** How many are armed; `next`: when the timer is due. */
  get armed(): { readonly count: number; readonly next?: number } {
    return { count: this.#current.size, next: this.#timer?.at };
  }

  arm(key: string, at: number | undefined): void {
    const before = this.#current.get(key);
    if (before === at || this.#stopped) return;
    if (at === undefined) {
      this.#current.delete(key);
      return;
    }
    this.#current.set(key, at);
    this.#push({ at, key });
    if (this.#heap.length > 2 * this.#current.size + SLACK) this.#rebuild();
    this.#setTimer();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    if (this.#slice) clearImmediate(this.#slice);
    this.#current.clear();
    this.#heap = [];
  }

  #setTimer(): void {
    const next = this.#heap[0];
    if (!next || this.#slice || (this.#timer && this.#timer.at <= next.at)) return;
    this.#timer?.cancel();
    this.#timer = {
      at: next.at,
      cancel: this.#clock.at(next.at, () => {
        this.#timer = undefined;
        this.#handOut();
      }),
    };
  }

  #handOut(): void {
    this.#slice = undefined;
    if (this.#stopped) return;
    const began = this.#clock.now();
    for (let next = this.#heap[0]; next && next.at <= this.#clock.now(); next = this.#heap[0]) {
      this.#pop();
      if (this.#current.get(next.key) !== next.at) continue;
      this.#current.delete(next.key);
      this.#due(next.key, this.#clock.now(), next.at);
      if (this.#clock.now() - began > SLICE_MS) {
        this.#slice = setImmediate(() => this.#handOut());
        return;
      }
    }
    this.#setTimer();
  }

  #rebuild(): void {
    const living = [...this.#current].map(([key, at]) => ({ at, key }));
    this.#heap = living.sort((a, b) => a.at - b.at);
  }

  #push(entry: Armed): void {
    const heap = this.#heap;
    let i = heap.push(entry) - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (heap[parent]!.at <= entry.at) break; // a parent is in range
      heap[i] = heap[parent]!;
      i = parent;
    }
    heap[i] = entry;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (!last || heap.length === 0) return;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      // both in range
      if (child + 1 < heap.length && heap[child + 1]!.at < heap[child]!.at) child += 1;
      if (heap[child]!.at >= last.at) break;
      heap[i] = heap[child]!;
      i = child;
    }
    heap[i] = last;
  }
}
