import { FairSlots, within } from '../../lib/fair-slots.ts';
import { NotSent } from './api-errors.ts';

/** One permit in eight is closed to a namespace that holds all the others. */
const KEPT_FOR_OTHERS = 8;
/** How long a namespace counts as active after a request, in ms. */
const ASKS_MS = 1_000;

/** Permits one request. */
export interface ConnectionPermit {
  readonly waitedMs: number;
  /** Passes the permit on. Safe to repeat. */
  release(): void;
}

/**
 * Permits at most `most` requests at once. Up to `mostWaiting` wait, at most half of them from one
 * namespace. Waiting namespaces take turns, and none gets all permits: another namespace's next
 * request waits for only one answer. While several namespaces are active, each has at most half,
 * since requests in progress also come first at the API server.
 */
export class ConnectionPermits {
  readonly #slots: FairSlots;
  readonly #most: number;
  readonly #now: () => number;
  readonly #mostWaiting: number;
  readonly #untilCalm = new Set<() => void>();
  #askedLast = { namespace: '', at: Number.NEGATIVE_INFINITY };
  #severalUntil = Number.NEGATIVE_INFINITY;

  /** `now`: monotonic time in ms. */
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
   * Takes a permit. `namespace` is '' for objects without one. Rejects with NotSent if no turn
   * comes within `patienceMs`, or if too many wait.
   */
  async acquire(namespace: string, patienceMs: number): Promise<ConnectionPermit> {
    const began = performance.now();
    this.#asks(namespace, this.#now());
    const release = await this.#slots.take(namespace, {
      full: () =>
        new NotSent(
          `too many requests wait for a connection already, at most ${this.#mostWaiting}, ` +
            'half of them of one namespace',
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

  /** Resolves once fewer than half of the permits are taken, or after `withinMs`. */
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
