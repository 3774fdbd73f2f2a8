import type { Metrics } from '../../contracts/metrics.ts';
import { Allowances } from '../../lib/allowance.ts';
import { tooMuchWaits } from '../../model/limit-refusals.ts';

export interface TurnsTerms {
  readonly metrics: Metrics;
  /** Milliseconds that only grow; absent: the process' own. */
  readonly now?: () => number;
  /**
   * Milliseconds that a processor has worked for the process; absent: as the system counts them.
   */
  readonly processorMs?: () => number;
  /** Requests that wait, of all tenants; one has at most half of what the others leave. */
  readonly mostWaiting?: number;
}

/** Says for how many ms a turn of the event loop begins the first requests of tenants. */
const FIRST_MS = 20;
/** Says the same of more requests of a tenant beside whom others are about. */
const MORE_MS = 2;
/** Another tenant is about for so long after each of its requests. */
const ABOUT_MS = 1_000;
/** A piece of work that keeps the loop busy for so many ms is paid for, for so many at most. */
const [COSTLY_MS, MOST_PAID_MS] = [5, 100];
/** Says that what is costly has half of the time: it rests for as long as it took beyond this. */
const LOOP_MS = { perSecond: 1_000, most: 20 };
/** Bounds the requests of one tenant that wait while it rests, and the long bodies that wait. */
export const MOST_COSTLY_WAITING = { ofTenant: 64, inAll: 512 };

interface Waiting {
  readonly isLong: boolean;
  readonly begin: () => void;
}

/**
 * A tenant's share of the event loop. One turn of the loop begins one request of each tenant that
 * asks, and more while the turn has taken little time. The rest wait for the next turns, tenants in
 * turn. A tenant whose requests keep the loop busy for long has half of the time while others are
 * about. Time counts as processor time: nobody pays for what sandboxes of this machine take.
 */
export class Turns {
  readonly #now: () => number;
  readonly #processorMs: () => number;
  readonly #mostWaiting: number;
  /** By tenant; who waits longest for a turn is first. No tenant is in it with nothing. */
  readonly #waiting = new Map<string, Waiting[]>();
  readonly #paid = new Allowances(LOOP_MS);
  /** Tenants of which this turn has begun a request. */
  readonly #begun = new Set<string>();
  /** The last two tenants that asked, and when. */
  #latest = { tenant: '', at: -ABOUT_MS };
  #before = { tenant: '', at: -ABOUT_MS };
  /** When this turn began; undefined between turns. */
  #turn: number | undefined;
  /** The processor time at a moment before the turn; asking for it costs more than a short turn. */
  #asked = { at: -COSTLY_MS, processorMs: 0 };
  /** A timer runs until somebody who rests may begin. */
  #isResting = false;
  #working: { readonly tenant: string; readonly since: number } | undefined;
  #isFollowed = false;
  readonly #count = { waiting: 0, long: 0, refused: 0, costlyMs: 0 };

  constructor({
    metrics,
    now = () => performance.now(),
    processorMs = processorMsOfProcess,
    mostWaiting = 8_192,
  }: TurnsTerms) {
    this.#now = now;
    this.#processorMs = processorMs;
    this.#mostWaiting = mostWaiting;
    const only = (value: number) => [{ labels: {}, value }];
    metrics.read('sandpool_costly_waiting', () => only(this.#count.waiting));
    metrics.read('sandpool_costly_refused_total', () => only(this.#count.refused));
    metrics.read('sandpool_costly_seconds_total', () => only(this.#count.costlyMs / 1_000));
  }

  /**
   * Undefined: the request may begin now. Else resolves when it may. Rejects with RATE_LIMITED
   * where too many of the tenant's wait. `isLong`: it brings a long body.
   */
  take(tenant: string, isLong = false): Promise<void> | undefined {
    this.#note(tenant);
    this.#openTurn();
    const own = this.#waiting.get(tenant);
    const restMs = this.#restMs(tenant);
    if (!own && restMs === 0 && this.#mayBegin(tenant)) return this.#begin(tenant);
    if (!this.#hasRoom(own?.length ?? 0, isLong, restMs > 0)) {
      this.#count.refused += 1;
      return Promise.reject(tooMuchWaits());
    }
    this.#count.waiting += 1;
    this.#count.long += Number(isLong);
    return new Promise<void>((begin) => {
      if (own) own.push({ isLong, begin });
      else this.#waiting.set(tenant, [{ isLong, begin }]);
    });
  }

  /**
   * From now on the loop's time is this tenant's, until another one works or the loop is free.
   * Whoever waited for something else than other promises says so again.
   */
  working(tenant: string): undefined {
    this.#pay();
    this.#openTurn();
    this.#working = { tenant, since: this.#now() };
    if (this.#isFollowed) return;
    this.#isFollowed = true;
    onceLoopIsFree(() => {
      this.#isFollowed = false;
      this.#pay();
    });
  }

  /** Whether a tenant other than this one has asked lately. */
  othersThan(tenant: string): boolean {
    const other = this.#latest.tenant === tenant ? this.#before : this.#latest;
    return this.#now() - other.at < ABOUT_MS;
  }

  #note(tenant: string): void {
    const at = this.#now();
    if (this.#latest.tenant === tenant) this.#latest.at = at;
    else [this.#before, this.#latest] = [this.#latest, { tenant, at }];
  }

  #hasRoom(own: number, isLong: boolean, rests: boolean): boolean {
    const { waiting, long } = this.#count;
    if ((isLong || rests) && own >= MOST_COSTLY_WAITING.ofTenant) return false;
    if (isLong && long >= MOST_COSTLY_WAITING.inAll) return false;
    return own < (this.#mostWaiting - (waiting - own)) / 2;
  }

  #mayBegin(tenant: string): boolean {
    if (this.#begun.size === 0) return true;
    const isMore = this.#begun.has(tenant) && this.othersThan(tenant);
    return this.#now() - (this.#turn ?? 0) < (isMore ? MORE_MS : FIRST_MS);
  }

  #begin(tenant: string): undefined {
    this.#begun.add(tenant);
    this.working(tenant);
  }

  /** For how long the tenant has to wait for what its requests took, in ms. */
  #restMs(tenant: string): number {
    const paid = this.#paid.known(tenant);
    return paid && this.othersThan(tenant) ? paid.waitMs(this.#now()) : 0;
  }

  #pay(): void {
    const working = this.#working;
    this.#working = undefined;
    if (!working || this.#turn === undefined) return;
    const now = this.#now();
    if (now - working.since < COSTLY_MS) return;
    // what passed between that moment and the turn is the process' own at most
    const before = this.#asked.processorMs + this.#turn - this.#asked.at;
    const ms = Math.min(now - working.since, this.#processorMs() - before);
    if (ms < COSTLY_MS) return;
    this.#count.costlyMs += ms;
    this.#paid.of(working.tenant, now).spend(Math.min(ms, MOST_PAID_MS), now);
  }

  #openTurn(): void {
    if (this.#turn !== undefined) return;
    const at = this.#now();
    this.#turn = at;
    if (at - this.#asked.at >= COSTLY_MS) this.#asked = { at, processorMs: this.#processorMs() };
    setImmediate(this.#endTurn);
  }

  readonly #endTurn = (): void => {
    this.#turn = undefined;
    this.#begun.clear();
    if (this.#waiting.size === 0) return;
    const restMs = this.#leastRestMs();
    if (restMs > 0) return this.#openTurnAfter(restMs);
    this.#openTurn();
    this.#beginNext();
  };

  #openTurnAfter(restMs: number): void {
    if (this.#isResting) return;
    this.#isResting = true;
    setTimeout(() => {
      this.#isResting = false;
      this.#openTurn();
    }, restMs).unref();
  }

  #leastRestMs(): number {
    let least = MOST_PAID_MS;
    for (const tenant of this.#waiting.keys()) {
      least = Math.min(least, this.#restMs(tenant));
      if (least === 0) break;
    }
    return least;
  }

  /** Begins one request, and the next one once nothing of that is left to do at once. */
  readonly #beginNext = (): void => {
    for (const [tenant, own] of this.#waiting) {
      if (this.#restMs(tenant) > 0 || !this.#mayBegin(tenant)) continue;
      const first = own.shift();
      this.#count.waiting -= 1;
      this.#count.long -= Number(first?.isLong ?? false);
      this.#waiting.delete(tenant);
      if (own.length > 0) this.#waiting.set(tenant, own); // last in the row now
      this.#begin(tenant);
      first?.begin();
      return onceLoopIsFree(this.#beginNext);
    }
  };
}

/** A tick that a microtask asks for comes once there are no more microtasks. */
const onceLoopIsFree = (then: () => void): void => {
  queueMicrotask(() => {
    process.nextTick(then);
  });
};

const processorMsOfProcess = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};
