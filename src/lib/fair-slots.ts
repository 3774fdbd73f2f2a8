export interface FairSlotsLimits {
  /** Called each time, because the setting may change. */
  readonly most: () => number;
  /** Given the limit `most` for all. */
  readonly mostOfTenant: (most: number) => number;
  /** All tenants together, and one. */
  readonly mostWaiting: number;
  readonly mostWaitingOfTenant: number;
}

export interface TurnTerms {
  /** If too many tasks wait. */
  readonly full: () => Error;
  /** If the wait took too long; defaults to `full`. */
  readonly late?: () => Error;
  /**
   * Calls back when the wait is too long; returns a function that cancels this. Absent: no limit.
   */
  readonly until?: (late: () => void) => () => void;
}

export const within =
  (ms: number): NonNullable<TurnTerms['until']> =>
  (late) => {
    const timer = setTimeout(late, ms);
    return () => clearTimeout(timer);
  };

/** `release` is idempotent. */
export type Begin = (release: () => void) => void;

/**
 * Slots that tenants share, round robin over tenants, and first come first served within one. A
 * tenant's next task waits for only one slot. With a limit per tenant below the total, hung tasks
 * only block their own tenant.
 */
export class FairSlots {
  readonly #limits: FairSlotsLimits;
  /** Longest wait first. No set is empty. */
  readonly #waiting = new Map<string, Set<Begin>>();
  readonly #underWayOf = new Map<string, number>();
  #underWay = 0;
  #waitingInAll = 0;
  #isServing = false;

  constructor(limits: FairSlotsLimits) {
    this.#limits = limits;
  }

  get underWay(): number {
    return this.#underWay;
  }

  /**
   * Begins at once if a slot is free. The returned function withdraws a waiting task; undefined if
   * too many wait. `begin` must not throw.
   */
  request(tenant: string, begin: Begin): (() => void) | undefined {
    const own = this.#waiting.get(tenant);
    if (!own && this.#hasRoom(tenant)) {
      this.#begin(tenant, begin);
      return () => undefined;
    }
    const { mostWaiting, mostWaitingOfTenant } = this.#limits;
    if (this.#waitingInAll >= mostWaiting || (own?.size ?? 0) >= mostWaitingOfTenant)
      return undefined;
    const mine: Begin = (release) => {
      begin(release);
    };
    if (own) own.add(mine);
    else this.#waiting.set(tenant, new Set([mine]));
    this.#waitingInAll += 1;
    return () => {
      this.#remove(tenant, mine);
    };
  }

  /** Resolves with a function that releases the slot. Rejects with `full` or `late`. */
  take(tenant: string, { full, late = full, until }: TurnTerms): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const callOff = until?.(() => {
        takeBack?.();
        reject(late());
      });
      const takeBack = this.request(tenant, (release) => {
        callOff?.();
        resolve(release);
      });
      if (takeBack) return;
      callOff?.();
      reject(full());
    });
  }

  #serve(): void {
    // called by a task that ended as soon as it began: the loop continues
    if (this.#isServing) return;
    this.#isServing = true;
    for (let next = this.#next(); next; next = this.#next()) {
      const [tenant, begin] = next;
      this.#remove(tenant, begin);
      const others = this.#waiting.get(tenant);
      if (others) {
        this.#waiting.delete(tenant);
        this.#waiting.set(tenant, others);
      }
      this.#begin(tenant, begin);
    }
    this.#isServing = false;
  }

  /** Passes over at most as many tenants as there are slots, because each of those holds one. */
  #next(): [tenant: string, begin: Begin] | undefined {
    if (this.#underWay >= this.#limits.most()) return undefined;
    for (const [tenant, [first]] of this.#waiting)
      if (first && this.#hasRoom(tenant)) return [tenant, first];
    return undefined;
  }

  #hasRoom(tenant: string): boolean {
    const most = this.#limits.most();
    return (
      this.#underWay < most && (this.#underWayOf.get(tenant) ?? 0) < this.#limits.mostOfTenant(most)
    );
  }

  #begin(tenant: string, begin: Begin): void {
    this.#underWay += 1;
    this.#underWayOf.set(tenant, (this.#underWayOf.get(tenant) ?? 0) + 1);
    let isReleased = false;
    begin(() => {
      if (isReleased) return;
      isReleased = true;
      this.#underWay -= 1;
      const left = (this.#underWayOf.get(tenant) ?? 1) - 1;
      if (left > 0) this.#underWayOf.set(tenant, left);
      else this.#underWayOf.delete(tenant);
      this.#serve();
    });
  }

  #remove(tenant: string, begin: Begin): void {
    const own = this.#waiting.get(tenant);
    if (!own?.delete(begin)) return;
    this.#waitingInAll -= 1;
    if (own.size === 0) this.#waiting.delete(tenant);
  }
}
