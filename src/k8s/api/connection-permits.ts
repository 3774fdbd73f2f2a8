import { FairSlots } from '../../lib/fair-slots.ts';
import { NotSent } from './api-errors.ts';

/** One in eight is not for a namespace that has all the others. */
const KEPT_FOR_OTHERS = 8;
/** Milliseconds for which a namespace that asked counts as one that asks. */
const ASKS_MS = 1_000;

/** The permit of a request that may be sent now. */
export interface ConnectionPermit {
  readonly waitedMs: number;
  /** Gives it to the next one. May be repeated. */
  release(): void;
}

/**
 * At most `most` at once; others wait their turn, at most `mostWaiting` of them, half of those of
 * one namespace. Namespaces that wait have one turn each, and none has all of them: however much is
 * asked for in one, another's next request waits for one answer. While several ask, one has half:
 * what it has under way is before the others' at the API server, too.
 */
export class ConnectionPermits {
  readonly #slots: FairSlots;
  readonly #most: number;
  readonly #now: () => number;
  readonly #mostWaiting: number;
  readonly #untilCalm = new Set<() => void>();
  #taken = 0;
  #askedLast = { namespace: '', at: Number.NEGATIVE_INFINITY };
  #severalUntil = Number.NEGATIVE_INFINITY;

  /** `now`: milliseconds of a clock that never goes back. */
  constructor(most: number, mostWaiting: number, now = () => performance.now()) {
    this.#most = most;
    this.#now = now;
    this.#mostWaiting = mostWaiting;
    this.#slots = new FairSlots({
      most: () => most,
      mostOfTenant: () =>
        now() < this.#severalUntil
          ? Math.ceil(most / 2)
          : most - Math.floor(most / KEPT_FOR_OTHERS),
      mostWaiting,
      mostWaitingOfTenant: Math.ceil(mostWaiting / 2),
    });
  }

  /**
   * `namespace`: '' of what is of none. Rejects with NotSent where no turn came within
   * `patienceMs`, or too many wait.
   */
  async acquire(namespace: string, patienceMs: number): Promise<ConnectionPermit> {
    const began = performance.now();
    this.#asks(namespace, this.#now());
    return await new Promise<ConnectionPermit>((resolve, reject) => {
      const timer = setTimeout(() => {
        takeBack?.();
        reject(new NotSent(`no free connection within ${patienceMs} ms`));
      }, patienceMs);
      const takeBack = this.#slots.request(namespace, (release) => {
        clearTimeout(timer);
        this.#taken += 1;
        resolve({ waitedMs: performance.now() - began, release: this.#done(release) });
      });
      if (takeBack) return;
      clearTimeout(timer);
      reject(
        new NotSent(
          `too many requests wait for a connection already, at most ${this.#mostWaiting}, ` +
            'half of them of one namespace',
        ),
      );
    });
  }

  #asks(namespace: string, at: number): void {
    if (namespace === '') return;
    const { namespace: before, at: beforeAt } = this.#askedLast;
    if (namespace !== before && at - beforeAt < ASKS_MS) this.#severalUntil = at + ASKS_MS;
    this.#askedLast = { namespace, at };
  }

  /** Resolves once fewer than half are taken, or after `withinMs`. */
  async untilIdleEnough(withinMs: number): Promise<void> {
    if (this.#taken < this.#most / 2) return;
    await new Promise<void>((resolve) => {
      const mine = (): void => {
        clearTimeout(timer);
        this.#untilCalm.delete(mine);
        resolve();
      };
      const timer = setTimeout(mine, withinMs);
      this.#untilCalm.add(mine);
    });
  }

  #done(release: () => void): () => void {
    let isDone = false;
    return () => {
      if (isDone) return;
      isDone = true;
      this.#taken -= 1;
      release();
      if (this.#taken < this.#most / 2) for (const calm of [...this.#untilCalm]) calm();
    };
  }
}
