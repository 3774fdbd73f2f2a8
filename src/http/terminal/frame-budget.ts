import { Allowance } from '../../lib/allowance.ts';

/** Per second; after a quiet second, the same amount may come at once. */
export interface FrameRates {
  readonly frames: number;
  readonly bytes: number;
}

export interface FrameBudgetTerms {
  readonly connection: FrameRates;
  readonly tenant: FrameRates;
}

const MIB = 1024 * 1024;
export const DEFAULT_FRAMES: FrameBudgetTerms = {
  connection: { frames: 1_000, bytes: 16 * MIB },
  tenant: { frames: 4_000, bytes: 64 * MIB },
};

/** Longest pause of reading, in ms. A message that was read is accepted, whatever its size. */
const MOST_WAIT_MS = 5_000;

interface Budget {
  readonly frames: Allowance;
  readonly bytes: Allowance;
}

/** Limits the frames that terminals send, per connection and per tenant. */
export class FrameBudgets {
  readonly #terms: FrameBudgetTerms;
  readonly #now: () => number;
  readonly #tenants = new Map<string, { readonly budget: Budget; terminals: number }>();

  constructor(terms: FrameBudgetTerms, now: () => number) {
    this.#terms = terms;
    this.#now = now;
  }

  /** A terminal without a known tenant shares no budget. */
  join(tenant: string | undefined): FrameBudget {
    const own = this.#open(this.#terms.connection);
    if (tenant === undefined) return new FrameBudget([own], this.#now, () => {});
    const shared = this.#tenants.get(tenant) ?? {
      budget: this.#open(this.#terms.tenant),
      terminals: 0,
    };
    this.#tenants.set(tenant, shared);
    shared.terminals += 1;
    return new FrameBudget([own, shared.budget], this.#now, () => {
      shared.terminals -= 1;
      if (shared.terminals === 0) this.#tenants.delete(tenant);
    });
  }

  #open({ frames, bytes }: FrameRates): Budget {
    const now = this.#now();
    return {
      frames: new Allowance({ perSecond: frames, most: frames }, now),
      bytes: new Allowance({ perSecond: bytes, most: bytes }, now),
    };
  }
}

export class FrameBudget {
  readonly #budgets: readonly Budget[];
  readonly #now: () => number;
  #leave: () => void;

  constructor(budgets: readonly Budget[], now: () => number, leave: () => void) {
    this.#budgets = budgets;
    this.#now = now;
    this.#leave = leave;
  }

  spend(bytes: number): void {
    const now = this.#now();
    for (const budget of this.#budgets) {
      budget.frames.spend(1, now);
      budget.bytes.spend(bytes, now);
    }
  }

  /** How long to stop reading, in ms. */
  waitMs(): number {
    const now = this.#now();
    const waits = this.#budgets.flatMap(({ frames, bytes }) => [
      frames.waitMs(now),
      bytes.waitMs(now),
    ]);
    return Math.min(MOST_WAIT_MS, Math.max(...waits));
  }

  /** May be repeated. */
  leave(): void {
    this.#leave();
    this.#leave = () => {};
  }
}
