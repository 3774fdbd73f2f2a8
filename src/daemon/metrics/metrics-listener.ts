import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Log } from '../../contracts/log.ts';
import type { PrometheusMetrics } from './prometheus-metrics.ts';

const MOST_CONNECTIONS = 32;
const HEADERS_TIMEOUT_MS = 5_000;
const REQUEST_TIMEOUT_MS = 10_000;

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
        this.#log.error({ error }, 'metrics-not-written');
        response.destroy();
      });
    },
  );

  constructor(metrics: PrometheusMetrics, log: Log) {
    this.#metrics = metrics;
    this.#log = log;
    this.#server.maxConnections = MOST_CONNECTIONS;
  }

  async start({ host, port }: { readonly host: string; readonly port: number }): Promise<number> {
    await this.#listen(host, port);
    return (this.#server.address() as AddressInfo).port;
  }

  /** May be repeated, or called before `start`. */
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
          this.#log.warn({ error }, 'metrics-listener-failed');
        });
        resolve();
      });
    });
  }

  async #answer({ method, url }: IncomingMessage, response: ServerResponse): Promise<void> {
    if (url?.split('?', 1)[0] !== '/metrics') return end(response, 404, 'only /metrics exists\n');
    if (method !== 'GET' && method !== 'HEAD') {
      response.setHeader('Allow', 'GET, HEAD');
      return end(response, 405, 'only GET is possible here\n');
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
