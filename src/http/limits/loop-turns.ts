import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Metrics } from '../../contracts/metrics.ts';
import { tooMuchWaits } from '../../model/limit-refusals.ts';
import { prepared, turnAway } from './prepared-answer.ts';
import type { Overload, TenantOf } from './overload.ts';
import { TenantsAbout } from './tenants-about.ts';

export interface LoopTurnsTerms {
  readonly metrics: Metrics;
  /** Milliseconds that only grow; absent: the process' own. */
  readonly now?: () => number;
  /** Absent: 4,096. */
  readonly mostWaitingOfTenant?: number;
}

/**
 * Requests of one tenant that one turn of the event loop begins while other tenants are about,
 * however long the turn has taken.
 */
export const MOST_OF_TENANT = 2;
/** Requests that waited, of all tenants, that begin before the time is looked at again. */
const MOST_OF_WAITING = 16;
/** Milliseconds from a turn's first request in which more than that begin. */
const MORE_MS = 2;

/**
 * Shares out the turns of the event loop among tenants: while others are about, one turn begins two
 * requests of a tenant, and more only while the turn's requests have taken little time. What has
 * come beyond waits for the next turns, tenants in turn. So whoever asks seldom finds the loop free
 * after a moment, however many requests of another one have come; and a turn that was long for
 * another reason, such as a slow disk, is followed by as many requests as have come meanwhile, if
 * they are cheap. Who is alone waits for nothing.
 */
export class LoopTurns {
  readonly #about: TenantsAbout;
  readonly #mostWaitingOfTenant: number;
  readonly #begun = new Map<string, number>();
  /** By tenant; who waits longest for a turn is first. No tenant is in it with nothing. */
  readonly #waiting = new Map<string, (() => void)[]>();
  /** Requests that have had their turn before their caller was known for certain. */
  readonly #early = new WeakSet<object>();
  readonly #now: () => number;
  #ends = false;
  /** When the first request of this turn began. */
  #began = 0;
  #waitingInAll = 0;
  #refused = 0;

  constructor({
    metrics,
    now = () => performance.now(),
    mostWaitingOfTenant = 4_096,
  }: LoopTurnsTerms) {
    this.#now = now;
    this.#about = new TenantsAbout(now);
    this.#mostWaitingOfTenant = mostWaitingOfTenant;
    metrics.read('sandpool_costly_waiting', () => [{ labels: {}, value: this.#waitingInAll }]);
    metrics.read('sandpool_costly_refused_total', () => [{ labels: {}, value: this.#refused }]);
  }

  /**
   * Takes a turn as `take` does, before the request is looked at: with the tenant whose key it
   * brings. It has no second turn then.
   */
  takeEarly(request: object, tenant: string): Promise<void> | undefined {
    this.#early.add(request);
    return this.#turnOf(tenant);
  }

  /**
   * Undefined: the request may begin now. Else resolves when it may. Rejects with RATE_LIMITED
   * where too many of the tenant's wait.
   */
  take(tenant: string, request: object = {}): Promise<void> | undefined {
    return this.#early.has(request) ? undefined : this.#turnOf(tenant);
  }

  #turnOf(tenant: string): Promise<void> | undefined {
    this.#about.note(tenant);
    const own = this.#waiting.get(tenant);
    if (!own && !this.#about.othersThan(tenant)) return undefined;
    this.#endTurnLater();
    const begun = this.#begun.get(tenant) ?? 0;
    if (!own && (begun < MOST_OF_TENANT || this.#isEarly())) {
      this.#begun.set(tenant, begun + 1);
      return undefined;
    }
    if ((own?.length ?? 0) >= this.#mostWaitingOfTenant) {
      this.#refused += 1;
      return Promise.reject(tooMuchWaits());
    }
    this.#waitingInAll += 1;
    return new Promise((resolve) => {
      if (own) own.push(resolve);
      else this.#waiting.set(tenant, [resolve]);
    });
  }

  /** The turn's requests have not taken long so far. */
  #isEarly(): boolean {
    return this.#now() - this.#began < MORE_MS;
  }

  #endTurnLater(): void {
    if (this.#ends) return;
    this.#ends = true;
    this.#began = this.#now();
    setImmediate(this.#endTurn);
  }

  readonly #endTurn = (): void => {
    this.#ends = false;
    this.#began = this.#now();
    this.#begun.clear();
    this.#beginWaiting();
    if (this.#waiting.size > 0) this.#endTurnLater();
  };

  /** Begins two of each tenant, and once their work is done the next two, while it is early. */
  readonly #beginWaiting = (): void => {
    let left = MOST_OF_WAITING;
    for (const [tenant, own] of [...this.#waiting]) {
      if (left <= 0) break;
      const next = own.splice(0, Math.min(MOST_OF_TENANT, left));
      left -= next.length;
      this.#waitingInAll -= next.length;
      this.#begun.set(tenant, (this.#begun.get(tenant) ?? 0) + next.length);
      this.#waiting.delete(tenant);
      if (own.length > 0) this.#waiting.set(tenant, own); // last in the row now
      for (const begin of next) begin();
    }
    if (this.#waiting.size === 0) return;
    // A tick that a microtask asks for comes once there are no more microtasks.
    queueMicrotask(() => {
      process.nextTick(this.#beginMoreWaiting);
    });
  };

  readonly #beginMoreWaiting = (): void => {
    if (this.#isEarly()) this.#beginWaiting();
  };
}

type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/**
 * Begins requests in their tenants' turns, before anything is spent on them, where many come in one
 * turn of the event loop. One whose client is gone by then is not begun.
 */
export const inTurn =
  ({
    overload,
    loopTurns,
    tenantOf,
    handle,
  }: {
    readonly overload: Pick<Overload, 'isBusy'>;
    readonly loopTurns: LoopTurns;
    readonly tenantOf: TenantOf;
    readonly handle: Handler;
  }): Handler =>
  async (request, response) => {
    const tenant = overload.isBusy ? tenantOf(request) : undefined;
    const turn = tenant === undefined ? undefined : loopTurns.takeEarly(request, tenant);
    try {
      if (turn) await turn;
    } catch {
      return turnAway(request, response, TOO_MUCH_WAITS);
    }
    if (!response.closed && !response.writableEnded) await handle(request, response);
  };

const TOO_MUCH_WAITS = prepared(tooMuchWaits());
