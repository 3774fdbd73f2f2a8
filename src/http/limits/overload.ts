import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Metrics } from '../../contracts/metrics.ts';
import { unavailable, type Refusal } from '../../model/refusals.ts';
import { prepared, turnAway } from './prepared-answer.ts';
import { KeyedSemaphore } from '../../lib/keyed-semaphore.ts';

const overloaded = (): Refusal => unavailable('too many requests are under way; try again shortly');

/** Requests of one connection that may wait for their answers at once. */
const MOST_PIPELINED = 32;

/** A connection is held for so long for each request turned away. */
const HOLD_MS = 100;
const MOST_HOLD_MS = 1_000;
/** Connections held at once are read from again in so many groups, one after the other. */
const HOLD_GROUPS = 64;

/** Requests that a long turn still takes of each tenant, and of all of them together. */
export const MOST_OF_TENANT_IN_LONG_TURN = 16;
const MOST_IN_LONG_TURN = 256;
/** So many requests of one turn begin at once, whoever sent them. */
const FEW_IN_TURN = 2;

const HEALTH = /^(?:\/v1)?\/(?:healthz|readyz)(?:\?|$)/;

/**
 * How many requests one turn of the loop takes in any case, and for how long it takes more, in ms.
 * (In that time sandboxes of this machine may have the processors, or the Pod is throttled.)
 */
export interface TurnLimits {
  readonly leastPerTurn: number;
  readonly maxTurnMs: number;
}

/** Who sends a request, where its key is known here; looked up in memory. */
export type TenantOf = (request: IncomingMessage) => string | undefined;

/**
 * Turns requests away before anything is spent on them. Health excepted: while all places of the
 * gate are taken, and once one turn of the event loop has taken so many requests for so long, so
 * that whoever comes next need not wait for all. A long turn still takes a few requests of each
 * tenant, so that a flood of one tenant turns away no other. A connection whose request was turned
 * away is not read from for a while, so that turning away leaves time for work. And where one
 * connection sends on and on without waiting for answers, which ends it.
 */
export class Overload {
  readonly #gate: InFlightGate;
  readonly #turn: TurnLimits;
  readonly #waiting = new WeakMap<Duplex, number>();
  readonly #ending = new WeakSet<Duplex>();
  /** How many requests were turned away of each of this turn's connections. */
  readonly #held = new Map<Duplex, number>();
  readonly #tenantOf: TenantOf;
  /** By tenant, what a long turn has taken of it. */
  readonly #takenOf = new Map<string, number>();
  #takenOfAll = 0;
  #turnBegan: number | undefined;
  #taken = 0;
  #turnedAway = 0;

  constructor({
    gate,
    turn,
    tenantOf,
    metrics,
  }: {
    readonly gate: InFlightGate;
    readonly turn: TurnLimits;
    readonly tenantOf: TenantOf;
    readonly metrics: Metrics;
  }) {
    metrics.read('sandpool_http_turned_away_total', () => [
      { labels: {}, value: this.#turnedAway },
    ]);
    this.#gate = gate;
    this.#turn = turn;
    this.#tenantOf = tenantOf;
  }

  /** Whether this turn of the loop has more requests than a few. */
  get isBusy(): boolean {
    return this.#taken > FEW_IN_TURN;
  }

  /** True where the request is answered, or will not be: there is nothing more to do. */
  shedLoad(request: IncomingMessage, response: ServerResponse): boolean {
    const { socket } = request;
    if (this.#ending.has(socket)) return true;
    const waiting = (this.#waiting.get(socket) ?? 0) + 1;
    this.#waiting.set(socket, waiting);
    response.once('close', () => this.#waiting.set(socket, (this.#waiting.get(socket) ?? 1) - 1));
    if (waiting > MOST_PIPELINED) {
      this.#ending.add(socket);
      response.shouldKeepAlive = false;
      this.#turnedAway += 1;
      turnAway(request, response, TOO_MANY_WAIT);
      return true;
    }
    const long = this.#turnIsLong();
    if ((!long && !this.#gate.full) || HEALTH.test(request.url ?? '')) return false;
    if (!this.#gate.full && this.#hasShareLeft(request)) return false;
    if (request.headers.expect !== undefined) response.shouldKeepAlive = false;
    this.#turnedAway += 1;
    turnAway(request, response, OVERLOADED);
    this.#held.set(socket, (this.#held.get(socket) ?? 0) + 1);
    return true;
  }

  #turnIsLong(): boolean {
    const now = performance.now();
    if (this.#turnBegan === undefined) {
      this.#turnBegan = now;
      setImmediate(this.#endTurn);
    }
    this.#taken += 1;
    return this.#taken > this.#turn.leastPerTurn && now - this.#turnBegan > this.#turn.maxTurnMs;
  }

  /** Counts the request in its tenant's share of a long turn; false where there is nothing left. */
  #hasShareLeft(request: IncomingMessage): boolean {
    if (this.#takenOfAll >= MOST_IN_LONG_TURN) return false;
    const tenant = this.#tenantOf(request);
    if (tenant === undefined) return false;
    const taken = this.#takenOf.get(tenant) ?? 0;
    if (taken >= MOST_OF_TENANT_IN_LONG_TURN) return false;
    this.#takenOf.set(tenant, taken + 1);
    this.#takenOfAll += 1;
    return true;
  }

  readonly #endTurn = (): void => {
    this.#turnBegan = undefined;
    this.#taken = 0;
    this.#takenOf.clear();
    this.#takenOfAll = 0;
    let nth = 0;
    for (const [socket, turnedAway] of this.#held) {
      socket.pause(); // not before: Node reads on after each request of what has come already
      setTimeout(() => socket.resume(), holdMs(turnedAway, nth++)).unref();
    }
    this.#held.clear();
  };
}

/**
 * For how long the nth connection of a turn is held. What came at once does not come at once again:
 * the next turns would be as long.
 */
export const holdMs = (turnedAway: number, nth: number): number =>
  Math.min(turnedAway * HOLD_MS, MOST_HOLD_MS) * (1 + (nth % HOLD_GROUPS) / HOLD_GROUPS);

const OVERLOADED = prepared(overloaded());
const TOO_MANY_WAIT = prepared(unavailable('too many requests wait on this connection'));

/**
 * How many operations may be under way at once; of one tenant at most half of them, of one kind a
 * quarter. Past that, requests are told to come back, so that those under way end soon. Operations
 * that mostly wait (a command, a stream) hold no place.
 */
export class InFlightGate {
  readonly #most: number;
  readonly #ofKind: KeyedSemaphore;
  readonly #ofTenant: KeyedSemaphore;
  #underWay = 0;

  constructor(most: number) {
    this.#most = most;
    this.#ofKind = new KeyedSemaphore(Math.ceil(most / 4));
    this.#ofTenant = new KeyedSemaphore(Math.ceil(most / 2));
  }

  get full(): boolean {
    return this.#underWay >= this.#most;
  }

  /** Refuses with UNAVAILABLE where there is no place for it. */
  async pass<T>(
    { operation, tenant }: { readonly operation: string; readonly tenant: string },
    work: () => Promise<T> | T,
  ): Promise<T> {
    const kind = `${operation} ${tenant}`;
    if (this.full || !this.#ofKind.acquire(kind)) throw overloaded();
    if (!this.#ofTenant.acquire(tenant)) {
      this.#ofKind.release(kind);
      throw overloaded();
    }
    this.#underWay += 1;
    try {
      return await work();
    } finally {
      this.#underWay -= 1;
      this.#ofKind.release(kind);
      this.#ofTenant.release(tenant);
    }
  }
}
