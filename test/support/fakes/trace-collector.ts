import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';

export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly {
    readonly key: string;
    readonly value: Readonly<Record<string, string | number>>;
  }[];
  readonly status: { readonly code: number };
}

interface Received {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: ReceivedSpan['attributes'] };
    readonly scopeSpans: readonly { readonly spans: readonly ReceivedSpan[] }[];
  }[];
}

/** OTLP over HTTP in JSON, on the loopback. */
export class TraceCollector {
  /** Status of further answers. */
  status = 200;
  readonly posts: {
    readonly path: string;
    readonly type: string | undefined;
    readonly headers: IncomingHttpHeaders;
    readonly text: string;
  }[] = [];
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<TraceCollector> {
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
      });
      request.on('end', () => {
        const body = Buffer.concat(chunks);
        const { headers, url: path = '' } = request;
        const text = headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
        collector.posts.push({
          path,
          type: headers['content-type'],
          headers,
          text: text.toString('utf8'),
        });
        response.writeHead(collector.status, { 'content-type': 'application/json' }).end('{}');
      });
    });
    const collector = new TraceCollector(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return collector;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get resources(): readonly ReceivedSpan['attributes'][] {
    return this.#bodies.flatMap(({ resourceSpans }) =>
      resourceSpans.map(({ resource }) => resource.attributes),
    );
  }

  get spans(): readonly ReceivedSpan[] {
    return this.#bodies.flatMap(({ resourceSpans }) =>
      resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)),
    );
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  get #bodies(): readonly Received[] {
    return this.posts.map(({ text }) => JSON.parse(text) as Received);
  }
}
