import { Allowances } from '../../lib/allowance.ts';
import { Permits } from '../../lib/permits.ts';
import { keyRateMet } from '../../model/limit-refusals.ts';
import { unavailable, type Refusal } from '../../model/refusals.ts';
import type { Caller } from '../../model/tenant.ts';

export const overloaded = (): Refusal =>
  unavailable('too many requests are in progress; try again shortly');

/**
 * One tenant may use half of the slots, and a quarter for one kind of operation. Operations that
 * mostly wait take no slot.
 */
export class Places {
  readonly #permits: Permits<'all' | 'kind' | 'tenant'>;

  constructor(most: number) {
    this.#permits = new Permits({
      all: most,
      kind: Math.ceil(most / 4),
      tenant: Math.ceil(most / 2),
    });
  }

  get areTaken(): boolean {
    return this.#permits.isFull('all', '');
  }

  /** Rejects with UNAVAILABLE if no slot is free. */
  async within<T>(
    { operation, tenant }: { readonly operation: string; readonly tenant: string },
    work: () => Promise<T> | T,
  ): Promise<T> {
    const kind = `${operation} ${tenant}`;
    const release = this.#permits.take({ all: '', kind, tenant }, overloaded);
    try {
      return await work();
    } finally {
      release();
    }
  }
}

/** Per replica, with a burst of one second. */
export class KeyRates {
  readonly #perSecond: number;
  readonly #now: () => number;
  readonly #ofKey: Allowances;
  readonly #counted = new WeakSet<object>();

  /** 0 for no limit. */
  constructor(perSecond: number, now: () => number = () => performance.now()) {
    this.#perSecond = perSecond;
    this.#now = now;
    this.#ofKey = new Allowances({ perSecond, most: perSecond - 1 });
  }

  /** Throws RATE_LIMITED over the limit. */
  count({ keyId }: Pick<Caller, 'keyId'>, request: object = {}): void {
    const waitMs = this.#count(keyId, request);
    if (waitMs > 0) throw keyRateMet(Math.ceil(waitMs / 1_000), this.#perSecond);
  }

  /** Like `count`, before parsing. False over the limit. */
  countEarly({ keyId }: Pick<Caller, 'keyId'>, request: object): boolean {
    return this.#count(keyId, request) === 0;
  }

  /** 0 if the request was counted. */
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
