import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Log } from '../contracts/log.ts';
import type { PrometheusMetrics } from './prometheus-metrics.ts';

/** `given`: by whoever runs the daemon, who wants it there or not at all. */
export interface MetricsListen {
  readonly host: string;
  readonly port: number;
  readonly given: boolean;
}

const MOST_CONNECTIONS = 32;
const HEADERS_TIMEOUT_MS = 5_000;
const REQUEST_TIMEOUT_MS = 10_000;

/** Answers GET /metrics, and nothing else, on a listener of its own. */
export class MetricsListener {
  readonly #metrics: PrometheusMetrics;
  readonly #log: Log;
  readonly #server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: 1_000,
      maxHeaderSize: 8_192,
    },
    (request, response) => {
      this.#answer(request, response).catch((error: unknown) => {
        this.#log.error({ error }, 'metrics could not be written');
        response.destroy();
      });
    },
  );

  constructor(metrics: PrometheusMetrics, log: Log) {
    this.#metrics = metrics;
    this.#log = log;
    this.#server.maxConnections = MOST_CONNECTIONS;
  }

  /**
   * Resolves with the address of the metrics once it listens. Where that address is taken it
   * rejects, or, where nobody asked for it, resolves without one: several daemons share a machine.
   */
  async start({ host, port, given }: MetricsListen): Promise<string | undefined> {
    const shown = `${host.includes(':') ? `[${host}]` : host}`;
    try {
      await this.#listen(host, port);
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      if (given || !isTaken(cause))
        throw new Error(`metrics.listen: ${shown}:${port} can't be listened on: ${why}`, { cause });
      this.#log.warn(
        { address: `${shown}:${port}` },
        'metrics are not served: another program has their port; metrics.listen names another one',
      );
      return undefined;
    }
    const address = `http://${shown}:${(this.#server.address() as AddressInfo).port}/metrics`;
    this.#log.info({ address }, 'metrics are served');
    return address;
  }

  /** May be repeated, and come before `start`. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => {
        resolve();
      });
    });
    this.#server.closeAllConnections();
    await closed;
  }

  #listen(host: string, port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, host, () => {
        this.#server.off('error', reject);
        this.#server.on('error', (error) => {
          this.#log.warn({ error }, 'the listener of the metrics failed');
        });
        resolve();
      });
    });
  }

  async #answer({ method, url }: IncomingMessage, response: ServerResponse): Promise<void> {
    if (url?.split('?', 1)[0] !== '/metrics')
      return end(response, 404, 'there is /metrics alone\n');
    if (method !== 'GET' && method !== 'HEAD') {
      response.setHeader('Allow', 'GET, HEAD');
      return end(response, 405, 'GET alone is possible here\n');
    }
    const text = await this.#metrics.text();
    response.setHeader('Content-Type', this.#metrics.contentType);
    response.setHeader('Cache-Control', 'no-store');
    response.end(text);
  }
}

const end = (response: ServerResponse, status: number, text: string): void => {
  response.writeHead(status, {
    'Content-Type': 'text/plain; charset=utf-8',
    'X-Content-Type-Options': 'nosniff',
  });
  response.end(text);
};

const isTaken = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
