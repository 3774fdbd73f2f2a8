import type { Metrics } from '../../contracts/metrics.ts';
import { Allowances } from '../../lib/allowance.ts';
import { tooMuchWaits } from '../../model/limit-refusals.ts';

export interface TurnsTerms {
  readonly metrics: Metrics;
  /** Monotonic, in ms. */
  readonly now?: () => number;
  readonly processorMs?: () => number;
  /** A tenant may use half of the slots that the others leave. */
  readonly mostWaiting?: number;
}

/**
 * In each turn, requests of tenants without one start for FIRST_MS. While other tenants are active,
 * further requests start only for MORE_MS.
 */
const FIRST_MS = 20;
const MORE_MS = 2;
/** A tenant counts as active this long after a request. */
const ABOUT_MS = 1_000;
/** Work that blocks the loop this long is charged to its tenant, up to MOST_PAID_MS. */
const [COSTLY_MS, MOST_PAID_MS] = [5, 100];
/** Beyond a burst of 20 ms, a tenant rests as long as its costly work took. */
const LOOP_MS = { perSecond: 1_000, most: 20 };
/** For a resting tenant, and for long bodies. */
export const MOST_COSTLY_WAITING = { ofTenant: 64, inAll: 512 };

interface Waiting {
  readonly isLong: boolean;
  readonly begin: () => void;
}

/**
 * Each turn of the event loop starts one request per tenant, and more if the turn was short; others
 * wait, round robin. A tenant with costly requests gets half of the time while others are active.
 * Sandboxes' CPU time does not count.
 */
export class Turns {
  readonly #now: () => number;
  readonly #processorMs: () => number;
  readonly #mostWaiting: number;
  /** Longest wait first; never an empty list. */
  readonly #waiting = new Map<string, Waiting[]>();
  readonly #paid = new Allowances(LOOP_MS);
  readonly #begun = new Set<string>();
  #latest = { tenant: '', at: -ABOUT_MS };
  #before = { tenant: '', at: -ABOUT_MS };
  #turn: number | undefined;
  /** Reading costs more than a short turn. */
  #asked = { at: -COSTLY_MS, processorMs: 0 };
  /** A timer waits for the first resting tenant. */
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
   * Undefined if the request may start. Rejects with RATE_LIMITED if too many of the tenant wait.
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
   * Until another tenant works or the loop is free. Repeat after waiting for anything but promises.
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

  /** In ms, for charged requests. */
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
    // Assumes that one processor was busy from sample to turn; other threads may have used more.
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

  readonly #beginNext = (): void => {
    for (const [tenant, own] of this.#waiting) {
      if (this.#restMs(tenant) > 0 || !this.#mayBegin(tenant)) continue;
      const first = own.shift();
      this.#count.waiting -= 1;
      this.#count.long -= Number(first?.isLong ?? false);
      this.#waiting.delete(tenant);
      if (own.length > 0) this.#waiting.set(tenant, own); // now last in the queue
      this.#begin(tenant);
      first?.begin();
      return onceLoopIsFree(this.#beginNext);
    }
  };
}

/** A tick queued by a microtask runs after all microtasks. */
const onceLoopIsFree = (then: () => void): void => {
  queueMicrotask(() => {
    process.nextTick(then);
  });
};

const processorMsOfProcess = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};
