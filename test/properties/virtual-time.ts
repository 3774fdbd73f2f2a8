/** Belongs to a process, or to none. */
interface Due {
  readonly at: number;
  readonly number: number;
  readonly process: VirtualProcess | undefined;
  readonly run: () => void;
}

/** Passes as fast as its events run, in one order. */
export class VirtualTime {
  now = 0;
  #number = 0;
  readonly #due: Due[] = [];

  /** Skipped if the process ended; delayed while it is stopped. */
  after(ms: number, run: () => void, process?: VirtualProcess): () => void {
    let cancelled = false;
    this.#put({
      at: this.now + Math.max(0, ms),
      number: this.#number++,
      process,
      run: () => {
        if (!cancelled) run();
      },
    });
    return () => {
      cancelled = true;
    };
  }

  /** `look` runs after each event. */
  async pass(ms: number, look: () => void): Promise<void> {
    const until = this.now + ms;
    for (let next = this.#due[0]; next && next.at <= until; next = this.#due[0]) {
      this.#due.shift();
      this.now = Math.max(this.now, next.at);
      if (next.process && next.process.stoppedUntil > this.now) {
        this.#put({ ...next, at: next.process.stoppedUntil });
        continue;
      }
      if (next.process?.ended !== true) {
        next.run();
        await new Promise((resolve) => {
          setImmediate(resolve);
        });
      }
      look();
    }
    this.now = until;
  }

  #put(due: Due): void {
    const place = this.#due.findIndex(
      (other) => other.at > due.at || (other.at === due.at && other.number > due.number),
    );
    this.#due.splice(place < 0 ? this.#due.length : place, 0, due);
  }
}

/**
 * Can be killed and stopped. Its monotonic clock has its own speed, and runs while it is stopped.
 */
export class VirtualProcess {
  ended = false;
  stoppedUntil = 0;
  readonly #time: VirtualTime;
  readonly #speed: number;

  constructor(time: VirtualTime, speed: number) {
    this.#time = time;
    this.#speed = speed;
  }

  now(): number {
    return this.#time.now * this.#speed;
  }

  after(ms: number, run: () => void): () => void {
    return this.#time.after(ms / this.#speed, run, this);
  }

  at(moment: number, run: () => void): () => void {
    return this.after(moment - this.now(), run);
  }
}
