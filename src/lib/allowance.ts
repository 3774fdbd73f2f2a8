/** `perSecond` come back, up to `most`. */
export interface AllowanceTerms {
  readonly perSecond: number;
  readonly most: number;
}

/**
 * A budget that time refills (a token bucket). What was spent may exceed what there was: the debt
 * is waited for. Moments are in ms.
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

  /** Until nothing is owed any more, in ms; 0 where nothing is. */
  waitMs(now: number): number {
    this.#refill(now);
    return this.#left >= 0 ? 0 : Math.ceil((-this.#left * 1_000) / this.#terms.perSecond);
  }

  /** Nothing is missing: another one would be the same. */
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

/** An allowance for each name. Those of the 10,000 names that were asked for last are known. */
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

  /** Undefined: nothing was spent of it lately. */
  known(name: string): Allowance | undefined {
    return this.#ofName.get(name);
  }
}
