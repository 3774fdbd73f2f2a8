export interface FairSlotsLimits {
  /** Tasks under way at one time. Asked anew each time, as it may be configured anew. */
  readonly most: () => number;
  /** The most tasks of one tenant under way at one time, where `most` is the bound of all. */
  readonly mostOfTenant: (most: number) => number;
  /** Tasks that wait, of all tenants and of one. */
  readonly mostWaiting: number;
  readonly mostWaitingOfTenant: number;
}

/** How a turn is waited for. */
export interface TurnTerms {
  /** Why there is none: too many wait. */
  readonly full: () => Error;
  /** Why there is none: it has not come in time. Absent: as `full`. */
  readonly late?: () => Error;
  /**
   * Calls back when the turn is too late; returns what calls that off. Absent: it is waited for
   * however long it takes.
   */
  readonly until?: (late: () => void) => () => void;
}

/** A deadline for a turn, by a timer of the process. */
export const within =
  (ms: number): NonNullable<TurnTerms['until']> =>
  (late) => {
    const timer = setTimeout(late, ms);
    return () => clearTimeout(timer);
  };

/**
 * Called when its turn has come, with what gives the slot back; repeated calls of that do nothing.
 */
export type Begin = (release: () => void) => void;

/**
 * A few slots that tenants share. Tasks that wait are begun tenant by tenant, one of each in turn,
 * and those of one tenant in their order: however many tasks one has, each other's next task waits
 * for one slot. Nobody holds all slots while the limit of a tenant is lower, so that tasks that
 * hang hold up their own tenant alone.
 */
export class FairSlots {
  readonly #limits: FairSlotsLimits;
  /** By tenant; who waits longest for a turn is first. No tenant is in it with nothing. */
  readonly #waiting = new Map<string, Set<Begin>>();
  readonly #underWayOf = new Map<string, number>();
  #underWay = 0;
  #waitingInAll = 0;
  #isServing = false;

  constructor(limits: FairSlotsLimits) {
    this.#limits = limits;
  }

  /** How many slots are taken. */
  get underWay(): number {
    return this.#underWay;
  }

  /**
   * Begins the task, now if there is a slot for it. Returns what takes back one that has not begun,
   * and undefined, without any effect, where too many wait already. `begin` must not throw.
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

  /**
   * Resolves with what gives the slot back, once its turn has come. Rejects with `full` where too
   * many wait already, and with `late` where it has not come in time.
   */
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
    // by a task that was over as soon as it began: the loop goes on with the next one
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

  /** At most as many tenants are passed over as there are slots: each of those holds one. */
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
