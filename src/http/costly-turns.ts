import { NO_METRICS, type Metrics } from '../contracts/metrics.ts';
import { TenantLine } from './tenant-line.ts';

export interface CostlyTurnsTerms {
  readonly metrics?: Metrics;
  /** Milliseconds that only grow; absent: the process' own. */
  readonly now?: () => number;
  /** Absent: 64 requests of a tenant wait, 512 in all, and refusals take 200 ms. */
  readonly mostWaitingOfTenant?: number;
  readonly holdMs?: number;
}

/** An operation that keeps the event loop busy so long, on average and for this tenant, is costly. Milliseconds. */
const COSTLY_MS = 5;
/** No one request says more: it may be the machine that stood still. */
const MOST_LEARNED_MS = 20;
/** How much of the average the newest request is. */
const WEIGHT = 0.2;
const FORGOTTEN_MS = 0.5;
const MOST_KNOWN = 10_000;
/** Others are about for so long after each of their requests. */
const ABOUT_MS = 1_000;
/** After a costly request the others have the loop for as long as it took; this long at most. */
const MOST_REST_MS = 100;

/**
 * Shares out the event loop's time. What requests keep it busy with is measured, by tenant and operation; those that turn
 * out costly have it one at a time, tenants in turn, before their body is parsed. Between two of them everybody else
 * is answered; while another tenant is about, costly requests have half of the time. Cheap ones never wait.
 */
export class CostlyTurns {
  readonly #now: () => number;
  readonly #line: TenantLine;
  /** What it took on average, in ms, by operation and tenant; only of what was costly lately. */
  readonly #costs = new Map<string, number>();
  /** The last two tenants that asked, and when. */
  #latest = { tenant: '', at: -ABOUT_MS };
  #before = { tenant: '', at: -ABOUT_MS };
  #spentMs = 0;
  #working: { readonly request: CostlyRequest; readonly since: number } | undefined;
  #isFollowed = false;

  constructor({ metrics = NO_METRICS, now = () => performance.now(), mostWaitingOfTenant = 64, holdMs = 200 }: CostlyTurnsTerms = {}) {
    this.#now = now;
    this.#line = new TenantLine({ most: 1, mostWaitingOfTenant, mostWaiting: 8 * mostWaitingOfTenant, holdMs });
    metrics.read('sandpool_costly_waiting', () => [{ labels: {}, value: this.#line.waiting }]);
    metrics.read('sandpool_costly_refused_total', () => [{ labels: {}, value: this.#line.refused }]);
    metrics.read('sandpool_costly_seconds_total', () => [{ labels: {}, value: this.#spentMs / 1_000 }]);
  }

  /** One request that has come. */
  request(tenant: string, operation: string): CostlyRequest {
    const at = this.#now();
    if (this.#latest.tenant === tenant) this.#latest.at = at;
    else [this.#before, this.#latest] = [this.#latest, { tenant, at }];
    return new CostlyRequest({
      turn: () => (this.#isCostly(tenant, operation) ? this.#line.turn(tenant) : undefined),
      works: (request) => { this.#works(request); },
      charge: (ms) => { this.#charge(`${operation} ${tenant}`, ms); },
      restMs: (ms) => (this.#othersAreAbout(tenant) ? Math.min(ms, MOST_REST_MS) : 0),
    });
  }

  /** From now on time is this request's, until another one works or the loop is free: no moment is charged twice. */
  #works(request: CostlyRequest): void {
    if (this.#working?.request === request) return;
    this.#pause();
    this.#working = { request, since: this.#now() };
    if (this.#isFollowed) return;
    this.#isFollowed = true;
    // A tick that a microtask asks for comes once there are no more microtasks: then whoever goes on has to wait.
    queueMicrotask(() => { process.nextTick(this.#loopIsFree); });
  }

  readonly #loopIsFree = (): void => {
    this.#isFollowed = false;
    this.#pause();
  };

  #pause(): void {
    const working = this.#working;
    this.#working = undefined;
    working?.request.worked(this.#now() - working.since);
  }

  #isCostly(tenant: string, operation: string): boolean {
    return this.#costs.size > 0 && (this.#costs.get(`${operation} ${tenant}`) ?? 0) >= COSTLY_MS;
  }

  #othersAreAbout(tenant: string): boolean {
    const other = this.#latest.tenant === tenant ? this.#before : this.#latest;
    return this.#now() - other.at < ABOUT_MS;
  }

  #charge(key: string, ms: number): void {
    if (ms >= COSTLY_MS) this.#spentMs += ms;
    const known = this.#costs.get(key) ?? 0;
    if (known === 0 && ms < COSTLY_MS) return;
    const average = known + (Math.min(ms, MOST_LEARNED_MS) - known) * WEIGHT;
    if (average < FORGOTTEN_MS) return void this.#costs.delete(key);
    this.#costs.set(key, average);
    if (this.#costs.size > MOST_KNOWN) for (const oldest of this.#costs.keys()) return void this.#costs.delete(oldest);
  }
}

interface CostlyRequestDeps {
  readonly turn: () => Promise<() => void> | undefined;
  readonly works: (request: CostlyRequest) => void;
  readonly charge: (ms: number) => void;
  readonly restMs: (ms: number) => number;
}

/** What one request keeps the loop busy with, in pieces between its waits. */
export class CostlyRequest {
  readonly #deps: CostlyRequestDeps;
  #isCharged = false;
  #endTurn: (() => void) | undefined;

  constructor(deps: CostlyRequestDeps) {
    this.#deps = deps;
  }

  /** Undefined: its work may begin at once. Else resolves when its turn has come, or rejects with RATE_LIMITED. */
  begin(): Promise<void> | undefined {
    const turn = this.#deps.turn();
    if (!turn) return this.working();
    return turn.then((end) => {
      this.#endTurn = end;
      this.working();
    });
  }

  /** Work goes on now. Whoever waits for something else than other promises says so again afterwards. */
  working(): undefined {
    this.#deps.works(this);
    return undefined;
  }

  /** A piece of its work is over. */
  worked(ms: number): void {
    // What is left to do after a wait is little, as a rule, and makes no operation cheaper.
    if (!this.#isCharged || ms >= COSTLY_MS) this.#deps.charge(ms);
    this.#isCharged = true;
    const end = this.#endTurn;
    this.#endTurn = undefined;
    if (!end) return;
    const rest = this.#deps.restMs(ms);
    // In any case the loop goes round once, so that what has come meanwhile is read.
    if (rest < 1) setImmediate(end);
    else setTimeout(end, rest);
  }
}
