import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { unavailable } from '../../model/refusals.ts';
import { errorAnswer } from '../reply/error-table.ts';
import { createListener, cutConnections, startListening, type TlsIdentity } from './listener.ts';
import { requestIdFrom } from '../limits/request-head.ts';
import type { ReadinessWire } from '../resources/health/schema.ts';

export interface WaitingServerOptions {
  readonly listen: { readonly host: string; readonly port: number };
  readonly tls: TlsIdentity | undefined;
  /** Called once it listens or fails. */
  readonly said: (outcome: { readonly port: number } | { readonly error: unknown }) => void;
}

const LIMITS = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 10_000,
  keepAliveTimeoutMs: 1_000,
  maxConnections: 1_024,
};

/**
 * Replaces the daemon's server until the daemon can start: `/healthz` is 200, `/readyz` gives the
 * reason, others get 503. `stop` frees the address.
 */
export class WaitingServer {
  readonly #options: WaitingServerOptions;
  #problem = '';
  #server: Server | undefined;
  #started: Promise<void> | undefined;

  constructor(options: WaitingServerOptions) {
    this.#options = options;
  }

  /** The first call starts the server. */
  say(problem: string): void {
    this.#problem = problem;
    this.#started ??= this.#start();
  }

  async stop(): Promise<void> {
    await this.#started;
    const server = this.#server;
    if (!server) return;
    const closed = new Promise<void>((resolve) => {
      server.close(() => {
        resolve();
      });
    });
    cutConnections(server);
    await closed;
  }

  /** A failure to listen must not stop the daemon. */
  async #start(): Promise<void> {
    const { listen, tls, said } = this.#options;
    const server = createListener(LIMITS, tls, (request, response) => {
      this.#answer(request, response);
    });
    try {
      const { port } = await startListening(server, listen);
      this.#server = server;
      said({ port });
    } catch (error) {
      said({ error });
    }
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const requestId = requestIdFrom(request.headers['x-request-id']);
    const path = (request.url ?? '').split('?', 1)[0]?.replace(/^\/v1(?=\/)/, '');
    const { status, headers, body } =
      path === '/healthz'
        ? HEALTHY
        : path === '/readyz'
          ? this.#notReady()
          : errorAnswer(unavailable('the daemon is starting'), requestId);
    response.shouldKeepAlive = false;
    response.writeHead(status, {
      ...headers,
      'X-Request-Id': requestId,
      'Content-Type': 'application/json; charset=utf-8',
    });
    response.end(JSON.stringify(body));
  }

  #notReady() {
    const body: ReadinessWire = {
      status: 'not ready',
      problems: [this.#problem],
      warnings: [],
      isolation: 'unknown',
    };
    return { status: 503, headers: { 'Retry-After': '1' }, body };
  }
}

const HEALTHY = { status: 200, headers: {}, body: { status: 'ok' } };
