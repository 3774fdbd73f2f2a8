import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { unavailable } from '../model/refusals.ts';
import { errorAnswer } from './error-table.ts';
import { overloaded, type InFlightGate } from './in-flight-gate.ts';
import { requestIdFrom } from './request-id.ts';

/** Requests of one connection that may wait for their answers at once. */
export const MOST_PIPELINED = 32;

const HEALTH = /^(?:\/v1)?\/(?:healthz|readyz)(?:\?|$)/;

/**
 * Turns requests away before anything is spent on them: while all places of the gate are taken, health excepted; and where
 * one connection sends on and on without waiting for answers, which ends it.
 */
export class Overload {
  readonly #gate: InFlightGate;
  readonly #waiting = new WeakMap<Duplex, number>();
  readonly #ending = new WeakSet<Duplex>();

  constructor(gate: InFlightGate) {
    this.#gate = gate;
  }

  /** True where the request is answered, or will not be: there is nothing more to do. */
  turnsAway(request: IncomingMessage, response: ServerResponse): boolean {
    const { socket } = request;
    if (this.#ending.has(socket)) return true;
    const waiting = (this.#waiting.get(socket) ?? 0) + 1;
    this.#waiting.set(socket, waiting);
    response.once('close', () => this.#waiting.set(socket, (this.#waiting.get(socket) ?? 1) - 1));
    if (waiting > MOST_PIPELINED) {
      this.#ending.add(socket);
      response.shouldKeepAlive = false;
      turnAway(request, response, unavailable('too many requests wait on this connection'));
      return true;
    }
    if (!this.#gate.full || HEALTH.test(request.url ?? '')) return false;
    if (request.headers.expect !== undefined) response.shouldKeepAlive = false;
    turnAway(request, response, overloaded());
    return true;
  }
}

const turnAway = (request: IncomingMessage, response: ServerResponse, refusal: Error): void => {
  const requestId = requestIdFrom(request.headers['x-request-id']);
  const { status, headers, body } = errorAnswer(refusal, requestId);
  const text = JSON.stringify(body);
  response.writeHead(status, {
    ...headers, 'X-Request-Id': requestId, 'Content-Type': 'application/json; charset=utf-8', 'Content-Length': Buffer.byteLength(text),
  });
  response.end(request.method === 'HEAD' ? undefined : text);
};
