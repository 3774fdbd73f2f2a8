import type { Metrics } from '../../contracts/metrics.ts';
import { TenantLine } from './tenant-line.ts';
import { TenantsAbout } from './tenants-about.ts';

export interface CostlyTurnsTerms {
  readonly metrics: Metrics;
  /** Milliseconds that only grow; absent: the process' own. */
  readonly now?: () => number;
  /**
   * Milliseconds that a processor has worked for the process; absent: as the system counts them.
   */
  readonly processorMs?: () => number;
  /** Absent: 64 requests of a tenant wait, 512 in all, and refusals take 200 ms. */
  readonly mostWaitingOfTenant?: number;
  readonly holdMs?: number;
}

/**
 * An operation that keeps the event loop busy so long, on average and for this tenant, is costly.
 * Milliseconds.
 */
const COSTLY_MS = 5;
/** No one request says more. */
const MOST_LEARNED_MS = 20;
/** Share of the newest request in the average. */
const WEIGHT = 0.2;
const FORGOTTEN_MS = 0.5;
const MOST_KNOWN = 10_000;
/** After a costly request the others have the loop for as long as it took; this long at most. */
const MOST_REST_MS = 100;

/**
 * Shares out the event loop's time. What requests keep it busy with is measured, by tenant and
 * operation, once one took long: by processor time from then on, so that nobody's requests are
 * costly because sandboxes of this machine have the processors, or because the cpu limit of the
 * daemon's Pod throttles it. Those that turn out costly have it one at a time, tenants in turn,
 * before their body is parsed. Between two of them everybody else is answered; while another tenant
 * is about, costly requests have half of the time. Cheap ones never wait.
 */
export class CostlyTurns {
  readonly #now: () => number;
  readonly #processorMs: () => number;
  readonly #line: TenantLine;
  readonly #about: TenantsAbout;
  /**
   * Holds what it took on average, in ms, by operation and tenant; only of what was costly lately,
   * or took long once (0).
   */
  readonly #costs = new Map<string, number>();
  #spentMs = 0;
  #working:
    | { readonly request: CostlyRequest; readonly since: number; readonly processorMs: number }
    | undefined;
  #isFollowed = false;

  constructor({
    metrics,
    now = () => performance.now(),
    processorMs = processorMsOfProcess,
    mostWaitingOfTenant = 64,
    holdMs = 200,
  }: CostlyTurnsTerms) {
    this.#now = now;
    this.#processorMs = processorMs;
    this.#about = new TenantsAbout(now);
    this.#line = new TenantLine({
      most: 1,
      mostWaitingOfTenant,
      mostWaiting: 8 * mostWaitingOfTenant,
      holdMs,
    });
    metrics.read('sandpool_costly_waiting', () => [{ labels: {}, value: this.#line.waiting }]);
    metrics.read('sandpool_costly_refused_total', () => [
      { labels: {}, value: this.#line.refused },
    ]);
    metrics.read('sandpool_costly_seconds_total', () => [
      { labels: {}, value: this.#spentMs / 1_000 },
    ]);
  }

  /** One request that has come. */
  request(tenant: string, operation: string): CostlyRequest {
    this.#about.note(tenant);
    const isWatched = this.#costs.size > 0 && this.#costs.has(`${operation} ${tenant}`);
    return new CostlyRequest({
      isWatched,
      turn: () => (this.#isCostly(tenant, operation) ? this.#line.turn(tenant) : undefined),
      works: (request) => {
        this.#works(request);
      },
      charge: (ms) => {
        this.#charge(`${operation} ${tenant}`, ms, isWatched);
      },
      restMs: (ms) => (this.#about.othersThan(tenant) ? Math.min(ms, MOST_REST_MS) : 0),
    });
  }

  /**
   * From now on time is this request's, until another one works or the loop is free: no moment is
   * charged twice.
   */
  #works(request: CostlyRequest): void {
    if (this.#working?.request === request) return;
    this.#pause();
    this.#working = {
      request,
      since: this.#now(),
      processorMs: request.isWatched ? this.#processorMs() : 0,
    };
    if (this.#isFollowed) return;
    this.#isFollowed = true;
    // A tick that a microtask asks for comes once there are no more microtasks: then whoever goes
    // on has to wait.
    queueMicrotask(() => {
      process.nextTick(this.#loopIsFree);
    });
  }

  readonly #loopIsFree = (): void => {
    this.#isFollowed = false;
    this.#pause();
  };

  #pause(): void {
    const working = this.#working;
    this.#working = undefined;
    if (!working) return;
    const tookMs = this.#now() - working.since;
    working.request.worked(
      working.request.isWatched
        ? Math.min(tookMs, this.#processorMs() - working.processorMs)
        : tookMs,
    );
  }

  #isCostly(tenant: string, operation: string): boolean {
    return this.#costs.size > 0 && (this.#costs.get(`${operation} ${tenant}`) ?? 0) >= COSTLY_MS;
  }

  #charge(key: string, ms: number, isWatched: boolean): void {
    if (ms >= COSTLY_MS) this.#spentMs += ms;
    if (!isWatched && (ms < COSTLY_MS || this.#costs.has(key))) return;
    const known = this.#costs.get(key) ?? 0;
    const average = isWatched ? known + (Math.min(ms, MOST_LEARNED_MS) - known) * WEIGHT : known;
    if (isWatched && average < FORGOTTEN_MS) return void this.#costs.delete(key);
    this.#costs.set(key, average);
    if (this.#costs.size > MOST_KNOWN)
      for (const oldest of this.#costs.keys()) return void this.#costs.delete(oldest);
  }
}

const processorMsOfProcess = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};

interface CostlyRequestDeps {
  /** Whether its time counts as processor time. */
  readonly isWatched: boolean;
  readonly turn: () => Promise<() => void> | undefined;
  readonly works: (request: CostlyRequest) => void;
  readonly charge: (ms: number) => void;
  readonly restMs: (ms: number) => number;
}

/** Measures what one request keeps the loop busy with, in pieces between its waits. */
export class CostlyRequest {
  readonly #deps: CostlyRequestDeps;
  #isCharged = false;
  #endTurn: (() => void) | undefined;

  constructor(deps: CostlyRequestDeps) {
    this.#deps = deps;
  }

  get isWatched(): boolean {
    return this.#deps.isWatched;
  }

  /**
   * Undefined: its work may begin at once. Else resolves when its turn has come, or rejects with
   * RATE_LIMITED.
   */
  begin(): Promise<void> | undefined {
    const turn = this.#deps.turn();
    if (!turn) return this.working();
    return turn.then((end) => {
      this.#endTurn = end;
      this.working();
    });
  }

  /**
   * Work goes on now. Whoever waits for something else than other promises says so again
   * afterwards.
   */
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
