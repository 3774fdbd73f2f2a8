import { Allowance } from '../../lib/allowance.ts';

/** Bound what may come in a second; as much again at once after a quiet second. */
export interface FrameRates {
  readonly frames: number;
  readonly bytes: number;
}

export interface FrameBudgetTerms {
  /** Rates at which one terminal may send. */
  readonly connection: FrameRates;
  /** Rates at which all terminals of one tenant may send on this replica together. */
  readonly tenant: FrameRates;
}

const MIB = 1024 * 1024;
export const DEFAULT_FRAMES: FrameBudgetTerms = {
  connection: { frames: 1_000, bytes: 16 * MIB },
  tenant: { frames: 4_000, bytes: 64 * MIB },
};

/**
 * The longest that is waited for what came too much: what was read already is taken whatever it is.
 * Milliseconds.
 */
const MOST_WAIT_MS = 5_000;

interface Budget {
  readonly frames: Allowance;
  readonly bytes: Allowance;
}

/** Bounds what terminals may send, by connection and by tenant. */
export class FrameBudgets {
  readonly #terms: FrameBudgetTerms;
  readonly #now: () => number;
  readonly #tenants = new Map<string, { readonly budget: Budget; terminals: number }>();

  constructor(terms: FrameBudgetTerms, now: () => number) {
    this.#terms = terms;
    this.#now = now;
  }

  /**
   * For one more terminal of the tenant's; undefined: a tenant that is not known, who shares with
   * nobody.
   */
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

/** Bounds what one terminal may send. */
export class FrameBudget {
  readonly #budgets: readonly Budget[];
  readonly #now: () => number;
  #leave: () => void;

  constructor(budgets: readonly Budget[], now: () => number, leave: () => void) {
    this.#budgets = budgets;
    this.#now = now;
    this.#leave = leave;
  }

  /** Counts one frame. */
  spend(bytes: number): void {
    const now = this.#now();
    for (const budget of this.#budgets) {
      budget.frames.spend(1, now);
      budget.bytes.spend(bytes, now);
    }
  }

  /** For how long nothing more is to be read, in ms; 0: go on. */
  waitMs(): number {
    const now = this.#now();
    const waits = this.#budgets.flatMap(({ frames, bytes }) => [
      frames.waitMs(now),
      bytes.waitMs(now),
    ]);
    return Math.min(MOST_WAIT_MS, Math.max(...waits));
  }

  /** The terminal is gone. May be repeated. */
  leave(): void {
    this.#leave();
    this.#leave = () => {};
  }
}
