export interface AllowanceTerms {
  readonly perSecond: number;
  readonly most: number;
}

/**
 * A token bucket. A call may spend more than the balance; later calls wait for the debt. Times are
 * in ms.
 */
export class Allowance {
  readonly #terms: AllowanceTerms;
  #left: number;
  #at: number;

  constructor(terms: AllowanceTerms, now: number) {
    this.#terms = terms;
    this.#left = terms.most;
    this.#at = now;
  }

  spend(amount: number, now: number): void {
    this.#refill(now);
    this.#left -= amount;
  }

  /** 0 without debt. */
  waitMs(now: number): number {
    this.#refill(now);
    return this.#left >= 0 ? 0 : Math.ceil((-this.#left * 1_000) / this.#terms.perSecond);
  }

  /** It then equals a new bucket. */
  isFull(now: number): boolean {
    this.#refill(now);
    return this.#left >= this.#terms.most;
  }

  #refill(now: number): void {
    const gained = (Math.max(0, now - this.#at) * this.#terms.perSecond) / 1_000;
    this.#left = Math.min(this.#terms.most, this.#left + gained);
    this.#at = Math.max(this.#at, now);
  }
}

const MOST_NAMES = 10_000;

/** Remembers the 10,000 most recently used names. */
export class Allowances {
  readonly #terms: AllowanceTerms;
  readonly #ofName = new Map<string, Allowance>();

  constructor(terms: AllowanceTerms) {
    this.#terms = terms;
  }

  of(name: string, now: number): Allowance {
    const allowance = this.#ofName.get(name) ?? new Allowance(this.#terms, now);
    this.#ofName.delete(name);
    this.#ofName.set(name, allowance);
    if (this.#ofName.size > MOST_NAMES)
      for (const first of this.#ofName.keys()) {
        this.#ofName.delete(first);
        break;
      }
    return allowance;
  }

  known(name: string): Allowance | undefined {
    return this.#ofName.get(name);
  }
}
