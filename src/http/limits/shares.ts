import { Allowances } from '../../lib/allowance.ts';
import { Permits } from '../../lib/permits.ts';
import { keyRateMet } from '../../model/limit-refusals.ts';
import { unavailable, type Refusal } from '../../model/refusals.ts';
import type { Caller } from '../../model/tenant.ts';

export const overloaded = (): Refusal =>
  unavailable('too many requests are under way; try again shortly');

/**
 * How many operations may be under way at once; of one tenant at most half of them, of one kind a
 * quarter. Past that, requests are told to come back, so that those under way end soon. Operations
 * that mostly wait (a command, a stream) hold no place.
 */
export class Places {
  readonly #most: number;
  readonly #permits: Permits<'kind' | 'tenant'>;
  #underWay = 0;

  constructor(most: number) {
    this.#most = most;
    this.#permits = new Permits({ kind: Math.ceil(most / 4), tenant: Math.ceil(most / 2) });
  }

  get areTaken(): boolean {
    return this.#underWay >= this.#most;
  }

  /** Refuses with UNAVAILABLE where there is no place for it. */
  async within<T>(
    { operation, tenant }: { readonly operation: string; readonly tenant: string },
    work: () => Promise<T> | T,
  ): Promise<T> {
    if (this.areTaken) throw overloaded();
    const release = this.#permits.take({ kind: `${operation} ${tenant}`, tenant }, overloaded);
    this.#underWay += 1;
    try {
      return await work();
    } finally {
      this.#underWay -= 1;
      release();
    }
  }
}

/**
 * How many requests each API key may send to this replica: so many a second, and as many at once
 * after a quiet second.
 */
export class KeyRates {
  readonly #perSecond: number;
  readonly #now: () => number;
  readonly #ofKey: Allowances;
  readonly #counted = new WeakSet<object>();

  /** 0: as many as they like. */
  constructor(perSecond: number, now: () => number = () => performance.now()) {
    this.#perSecond = perSecond;
    this.#now = now;
    this.#ofKey = new Allowances({ perSecond, most: perSecond - 1 });
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
    const own = this.#ofKey.of(keyId, now);
    const waitMs = own.waitMs(now);
    if (waitMs > 0) return waitMs;
    own.spend(1, now);
    this.#counted.add(request);
    return 0;
  }
}
