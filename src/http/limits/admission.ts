import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { AnswerBudget } from '../../actors/sandbox/commands/answer-budget.ts';
import type { Log } from '../../contracts/log.ts';
import type { Metrics } from '../../contracts/metrics.ts';
import { Permits } from '../../lib/permits.ts';
import { tooMuchWaits } from '../../model/limit-refusals.ts';
import { unavailable } from '../../model/refusals.ts';
import { tenantKey, type Caller } from '../../model/tenant.ts';
import { addressGroup, plainAddress } from './address-group.ts';
import { ArrivingBodies, UnreadAnswers } from './memory.ts';
import { DEFAULT_BOUNDS, type AdmissionBounds } from './bounds.ts';
import type { Clients } from './clients.ts';
import { KeyRates, overloaded, Places } from './shares.ts';
import { prepared, turnAway, type PreparedAnswer } from './prepared-answer.ts';
import { RefusalPace } from './refusal-pace.ts';
import { Turns } from './turns.ts';

export interface AdmissionDeps {
  readonly clients: Pick<Clients, 'isProxy' | 'knownCaller'>;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly answers: AnswerBudget;
  readonly keyRates?: KeyRates;
  readonly turns?: Turns;
  readonly pace?: Pick<RefusalPace, 'hold'>;
  readonly bounds?: Partial<AdmissionBounds>;
}

/** Least delay of a refusal before parsing. */
const TURNED_AWAY_MS = 100;
/** Longer bodies wait for another turn before they are parsed. */
const LONG_BYTES = 16_384;
/** Requests with an unknown key share one queue. */
const STRANGERS = '';
/** A connection ends after this many times `maxPipelined` ignored requests. */
const IGNORED_TIMES = 64;
const HEALTH = /^(?:\/v1)?\/(?:healthz|readyz)(?:\?|$)/;

const OVERLOADED = prepared(overloaded());
const TOO_MANY_WAIT = prepared(unavailable('too many requests wait on this connection'));
const TOO_MUCH_WAITS = prepared(tooMuchWaits());

/**
 * Admits requests on all ports within limits of operations, tenants' shares, memory, key rates and
 * connections. Refuses excess requests before they cost anything. Always answers health checks.
 */
export class Admission {
  readonly bounds: AdmissionBounds;
  readonly arriving: ArrivingBodies;
  readonly answers: AnswerBudget;
  readonly unread: UnreadAnswers;
  readonly places: Places;
  readonly #clients: AdmissionDeps['clients'];
  readonly #keyRates: KeyRates;
  readonly #turns: Turns;
  readonly #pace: Pick<RefusalPace, 'hold'>;
  readonly #ofAddress: Permits<'address'>;
  readonly #connected = new WeakSet<Duplex>();
  readonly #pipelined = new WeakMap<Duplex, number>();
  readonly #ending = new WeakSet<Duplex>();
  /** They had their tenant's turn before authentication. */
  readonly #begun = new WeakSet<IncomingMessage>();
  #turnedAway = 0;

  constructor({ clients, metrics, log, answers, ...deps }: AdmissionDeps) {
    const bounds = { ...DEFAULT_BOUNDS, ...deps.bounds };
    this.bounds = bounds;
    this.#clients = clients;
    this.answers = answers;
    this.arriving = new ArrivingBodies(bounds.maxArrivingBytes);
    this.unread = new UnreadAnswers({ stallMs: bounds.answerStallMs, log });
    this.places = new Places(bounds.maxInFlight);
    this.#keyRates = deps.keyRates ?? new KeyRates(0);
    this.#turns = deps.turns ?? new Turns({ metrics });
    this.#pace = deps.pace ?? new RefusalPace();
    this.#ofAddress = new Permits({ address: bounds.maxConnectionsPerAddress });
    metrics.read('sandpool_http_turned_away_total', () => [
      { labels: {}, value: this.#turnedAway },
    ]);
  }

  /** Closes a connection beyond the limit of its address (IPv6: /64). */
  connect(socket: Socket): void {
    const { remoteAddress } = socket;
    if (this.#connected.has(socket)) return;
    this.#connected.add(socket);
    if (remoteAddress === undefined || this.#clients.isProxy(remoteAddress)) return;
    const keys = { address: addressGroup(plainAddress(remoteAddress)) };
    if (this.#ofAddress.full(keys)) return void socket.destroy();
    socket.once('close', this.#ofAddress.take(keys, overloaded));
  }

  /** True if it refused or ignored the request: do nothing more. */
  turnsAway(request: IncomingMessage, response: ServerResponse): boolean {
    const { socket } = request;
    const waiting = (this.#pipelined.get(socket) ?? 0) + 1;
    this.#pipelined.set(socket, waiting);
    if (this.#ending.has(socket)) {
      // Node holds each further request until the first is answered.
      if (waiting > IGNORED_TIMES * this.bounds.maxPipelined) socket.destroy();
      return true;
    }
    response.once('close', () =>
      this.#pipelined.set(socket, (this.#pipelined.get(socket) ?? 1) - 1),
    );
    if (waiting > this.bounds.maxPipelined) {
      this.#ending.add(socket);
      response.shouldKeepAlive = false;
      void this.#refuse(request, response, TOO_MANY_WAIT);
    } else if (this.places.areTaken && !isHealth(request)) {
      void this.#refuse(request, response, OVERLOADED);
    } else return false;
    return true;
  }

  /** Runs before parsing. False if the request was refused or its client left. */
  async begin(request: IncomingMessage, response: ServerResponse): Promise<boolean> {
    if (isHealth(request)) return true;
    const caller = this.#clients.knownCaller(request);
    // A request over the rate limit is refused at its turn.
    if (caller && this.#keyRates.countEarly(caller, request)) this.#begun.add(request);
    try {
      const turn = this.#turns.take(caller ? tenantKey(caller) : STRANGERS);
      if (turn) await turn;
    } catch {
      await this.#refuse(request, response, caller ? TOO_MUCH_WAITS : OVERLOADED);
    }
    return !response.closed && !response.writableEnded;
  }

  /** Counts once. Throws RATE_LIMITED over the key's rate. */
  count(caller: Pick<Caller, 'keyId'>, request: IncomingMessage): void {
    this.#keyRates.count(caller, request);
  }

  /** Undefined if the request may proceed. */
  admit(caller: Caller, request: IncomingMessage): Promise<void> | undefined {
    this.#keyRates.count(caller, request);
    if (this.#begun.has(request)) return this.working(caller);
    this.#begun.add(request);
    return this.#turns.take(tenantKey(caller));
  }

  /** Like `admit`, for parsing a body. */
  parse(caller: Caller, bytes: number): Promise<void> | undefined {
    return bytes > LONG_BYTES ? this.#turns.take(tenantKey(caller), true) : this.working(caller);
  }

  working(caller: Caller): undefined {
    return this.#turns.working(tenantKey(caller));
  }

  /** Delays a 429 or 503; undefined if it may be sent at once. */
  hold(caller: Caller): Promise<void> | undefined {
    const tenant = tenantKey(caller);
    return this.#turns.othersThan(tenant) ? this.#pace.hold(tenant) : undefined;
  }

  async #refuse(
    request: IncomingMessage,
    response: ServerResponse,
    answer: PreparedAnswer,
  ): Promise<void> {
    if (answer.status === 503) this.#turnedAway += 1;
    if (request.headers.expect !== undefined) response.shouldKeepAlive = false;
    const held = this.#pace.hold(STRANGERS, TURNED_AWAY_MS);
    if (held) await held;
    else response.shouldKeepAlive = false;
    if (!response.closed) turnAway(request, response, answer);
  }
}

const isHealth = ({ url = '' }: IncomingMessage): boolean => HEALTH.test(url);
