import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';

export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: unknown;
}

export interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Sent as it is in place of `body`. */
  readonly text?: string;
}

export interface StubServer {
  readonly url: string;
  readonly seen: SeenRequest[];
  /** What the next request is answered; without one it hangs. */
  answer: (request: SeenRequest) => Answer | undefined | Promise<Answer | undefined>;
  readonly close: () => Promise<void>;
}

/** An HTTP server that answers what the test says, and remembers what it was asked. */
export const aStubServer = async (): Promise<StubServer> => {
  const sockets = new Set<Socket>();
  const server = createServer();
  const stub = {
    seen: [] as SeenRequest[],
    answer: (_request: SeenRequest): Answer | undefined | Promise<Answer | undefined> => ({
      body: {},
    }),
  };
  server.on('connection', (socket) => sockets.add(socket));
  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const seen = {
      method: request.method ?? '',
      url: request.url ?? '',
      headers: request.headers,
      body: text === '' ? undefined : JSON.parse(text),
    };
    stub.seen.push(seen);
    const answer = await stub.answer(seen);
    if (!answer) return;
    response.writeHead(answer.status ?? 200, {
      'content-type': 'application/json',
      'x-request-id': 'req-1',
      ...answer.headers,
    });
    response.end(answer.text ?? JSON.stringify(answer.body));
  };
  server.on(
    'request',
    (request, response) => void respond(request, response).catch(() => response.destroy()),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return Object.assign(stub, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  });
};
