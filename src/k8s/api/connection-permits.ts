import { FairSlots, within } from '../../lib/fair-slots.ts';
import { NotSent } from './api-errors.ts';

/** A namespace that holds all other permits does not get every eighth. */
const KEPT_FOR_OTHERS = 8;
const ASKS_MS = 1_000;

export interface ConnectionPermit {
  readonly waitedMs: number;
  /** May be repeated. */
  release(): void;
}

/**
 * Up to `mostWaiting` requests wait, at most half of them from one namespace. Waiting namespaces
 * take turns, and none gets all permits. While several are active, each has at most half, since
 * requests in progress also come first at the API server.
 */
export class ConnectionPermits {
  readonly #slots: FairSlots;
  readonly #most: number;
  readonly #now: () => number;
  readonly #mostWaiting: number;
  readonly #untilCalm = new Set<() => void>();
  #askedLast = { namespace: '', at: Number.NEGATIVE_INFINITY };
  #severalUntil = Number.NEGATIVE_INFINITY;

  /** `now`: monotonic ms. */
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
   * `namespace` is '' for objects without one. Rejects with NotSent if no turn comes in time, or if
   * too many wait.
   */
  async acquire(namespace: string, patienceMs: number): Promise<ConnectionPermit> {
    const began = performance.now();
    this.#asks(namespace, this.#now());
    const release = await this.#slots.take(namespace, {
      full: () =>
        new NotSent(
          `too many requests are waiting for a connection, at most ${this.#mostWaiting}, ` +
            'and half of them for one namespace',
        ),
      late: () => new NotSent(`no free connection within ${patienceMs} ms`),
      until: within(patienceMs),
    });
    return {
      waitedMs: performance.now() - began,
      release: () => {
        release();
        if (this.#isIdleEnough) for (const calm of [...this.#untilCalm]) calm();
      },
    };
  }

  #asks(namespace: string, at: number): void {
    if (namespace === '') return;
    const { namespace: before, at: beforeAt } = this.#askedLast;
    if (namespace !== before && at - beforeAt < ASKS_MS) this.#severalUntil = at + ASKS_MS;
    this.#askedLast = { namespace, at };
  }

  async untilIdleEnough(withinMs: number): Promise<void> {
    if (this.#isIdleEnough) return;
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

  get #isIdleEnough(): boolean {
    return this.#slots.underWay < this.#most / 2;
  }
}
