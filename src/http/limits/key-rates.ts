import { Allowance } from '../../lib/allowance.ts';
import { keyRateMet } from '../../model/limit-refusals.ts';
import type { Caller } from '../../model/tenant.ts';

const MOST_KEYS = 10_000;

/**
 * How many requests each API key may send to this replica: so many a second, and as many at once
 * after a quiet second.
 */
export class KeyRates {
  readonly #perSecond: number;
  readonly #now: () => number;
  readonly #ofKey = new Map<string, Allowance>();
  readonly #counted = new WeakSet<object>();

  /** 0: as many as they like. */
  constructor(perSecond: number, now: () => number = () => performance.now()) {
    this.#perSecond = perSecond;
    this.#now = now;
  }

  /**
   * Counts one request, once; throws RATE_LIMITED where it is one too many, which is not counted.
   */
  count({ keyId }: Pick<Caller, 'keyId'>, request: object = {}): void {
    const waitMs = this.#count(keyId, request);
    if (waitMs > 0) throw keyRateMet(Math.ceil(waitMs / 1_000), this.#perSecond);
  }

  /** Counts it as `count` does, before the request is looked at; false in place of a refusal. */
  countEarly({ keyId }: Pick<Caller, 'keyId'>, request: object): boolean {
    return this.#count(keyId, request) === 0;
  }

  /** Returns the milliseconds until the key may send one more; 0 where it was counted. */
  #count(keyId: string, request: object): number {
    if (this.#perSecond === 0 || this.#counted.has(request)) return 0;
    const now = this.#now();
    const allowance =
      this.#ofKey.get(keyId) ??
      new Allowance({ perSecond: this.#perSecond, most: this.#perSecond - 1 }, now);
    this.#ofKey.delete(keyId);
    this.#ofKey.set(keyId, allowance);
    if (this.#ofKey.size > MOST_KEYS)
      for (const first of this.#ofKey.keys()) {
        this.#ofKey.delete(first);
        break;
      }
    const waitMs = allowance.waitMs(now);
    if (waitMs > 0) return waitMs;
    allowance.spend(1, now);
    this.#counted.add(request);
    return 0;
  }
}
