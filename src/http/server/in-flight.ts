import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { cutConnections } from './listener.ts';
import { cutShort } from '../limits/prepared-answer.ts';

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Tracks unanswered requests, running operations and upgraded connections. */
export class InFlight {
  readonly #bySocket = new Map<Duplex, Exchange>();
  readonly #running = new Set<ServerResponse>();
  readonly upgraded = new Set<Duplex>();
  #whenIdle: (() => void) | undefined;

  add(request: IncomingMessage, response: ServerResponse): void {
    const exchange = { request, response };
    this.#running.add(response);
    this.#bySocket.set(request.socket, exchange);
    response.once('close', () => {
      if (this.#bySocket.get(request.socket) === exchange) this.#bySocket.delete(request.socket);
    });
  }

  /** Call when the operation has ended, answered or not. */
  settled(response: ServerResponse): void {
    this.#running.delete(response);
    if (this.#running.size === 0) this.#whenIdle?.();
  }

  /** Answers 503. An aborted operation may have taken effect. */
  cutShort(): void {
    for (const { request, response } of [...this.#bySocket.values()]) cutShort(request, response);
  }

  of(socket: Duplex): Exchange | undefined {
    return this.#bySocket.get(socket);
  }

  closeAfterAnswers(): void {
    for (const { response } of this.#bySocket.values())
      if (!response.headersSent) response.shouldKeepAlive = false;
  }

  /** Resolves when no operation runs, or after `deadlineMs`. */
  async idle(deadlineMs: number): Promise<void> {
    if (this.#running.size === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, deadlineMs);
      this.#whenIdle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

export const stopServing = async (
  server: Server,
  inFlight: InFlight,
  graceMs: number,
): Promise<void> => {
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  inFlight.closeAfterAnswers();
  server.closeIdleConnections();
  let cut = setTimeout(() => {
    inFlight.cutShort();
    for (const socket of inFlight.upgraded) socket.destroy();
    cut = setTimeout(() => cutConnections(server), LAST_ANSWER_MS);
  }, graceMs);
  await closed;
  clearTimeout(cut);
  await inFlight.idle(ABORT_GRACE_MS);
};

/** For clients to read the last answers. */
const LAST_ANSWER_MS = 200;

/** For operations to react to an abort. */
const ABORT_GRACE_MS = 2_000;

/** Unclosed responses. */
const open = new WeakMap<Duplex, Set<ServerResponse>>();

/**
 * With pipelined requests, Node closes only the response being written: waiting operations would
 * never learn that the client left.
 */
export const closeWithConnection = (
  { socket }: IncomingMessage,
  response: ServerResponse,
): void => {
  const known = open.get(socket);
  const responses = known ?? new Set<ServerResponse>();
  responses.add(response);
  response.once('close', () => responses.delete(response));
  if (known) return;
  open.set(socket, responses);
  socket.once('close', () => {
    for (const each of [...responses]) closeWaiting(each);
  });
};

/** Mimics Node's close. Node closes attached responses itself. */
const closeWaiting = (response: ServerResponse): void => {
  if (response.socket !== null || response.writableFinished || response.closed) return;
  response.destroy();
  Object.assign(response, { _closed: true });
  response.emit('close');
};
