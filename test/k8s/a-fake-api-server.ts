import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { silentMetrics, type Metrics } from '../../src/contracts/metrics.ts';
import type { TraceScope } from '../../src/contracts/tracing.ts';
import type { AddressInfo } from 'node:net';
import { apiServer } from '../../src/k8s/api/api-client.ts';
import type { ApiServer } from '../../src/k8s/api/api-calls.ts';
import type { ClusterAccess } from '../../src/k8s/api/cluster-access.ts';
import type { ServerClock } from '../../src/k8s/api/server-clock.ts';

export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export interface FakeApiServer {
  readonly port: number;
  readonly seen: SeenRequest[];
  close(): Promise<void>;
}

/**
 * An HTTP server that answers as the test says; for what a real API server can't be made to show.
 */
export const aFakeApiServer = async (
  answer: (request: SeenRequest, response: ServerResponse) => void,
): Promise<FakeApiServer> => {
  const seen: SeenRequest[] = [];
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming
      .on('data', (chunk: Buffer) => chunks.push(chunk))
      .on('end', () => {
        const request = {
          method: incoming.method ?? '',
          url: incoming.url ?? '',
          headers: incoming.headers,
          body: Buffer.concat(chunks).toString(),
        };
        seen.push(request);
        answer(request, response);
      });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    seen,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
};

export const json = (response: ServerResponse, body: unknown, status = 200): void => {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
};

/** Access to a port of loopback without TLS. */
export const plainAccess = (
  port: number,
  part: Partial<Pick<ClusterAccess, 'authorization' | 'rejected'>> = {},
): ClusterAccess => ({
  server: new URL(`http://127.0.0.1:${port}`),
  tls: { rejectUnauthorized: true },
  authorization: () => undefined,
  rejected: () => undefined,
  get kubeConfig(): never {
    throw new Error('the test has none');
  },
  ...part,
});

export const aClientOf = (
  port: number,
  {
    access = plainAccess(port),
    ...more
  }: {
    access?: ClusterAccess;
    clock?: ServerClock;
    metrics?: Metrics;
    traceScope?: TraceScope;
  } = {},
): ApiServer => apiServer({ metrics: silentMetrics, access, version: '0.0.1', ...more });
