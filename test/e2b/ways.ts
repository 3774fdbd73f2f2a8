import { once } from 'node:events';
import { createServer, request as ask } from 'node:http';
import { connect, type AddressInfo, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { Authority } from './an-authority.ts';

/** Something that stands between a client and the daemon. */
export interface Way {
  readonly port: number;
  readonly stop: () => void;
}

const CUT_MS = 10_000;

/**
 * Passes requests on to a daemon, on a port of its own, and cuts whatever is silent for 10 s, as clients and
 * proxies cut it after minutes. In proportion it asks for a sign of life each second.
 */
export const impatientWay = async (target: string): Promise<Way> =>
  await started(
    createServer({ keepAliveTimeout: 65_000 }, (request, response) => {
      const { method, headers, url = '/' } = request;
      const onwards = ask(new URL(url, target), {
        method,
        headers: { ...headers, 'keepalive-ping-interval': '1' },
        timeout: CUT_MS,
      });
      onwards.on('timeout', () => onwards.destroy(new Error('it was silent')));
      onwards.on('error', () => response.destroy());
      onwards.on('response', (answer) => {
        response.writeHead(answer.statusCode ?? 0, answer.statusMessage, answer.headers);
        response.flushHeaders();
        answer.on('error', () => response.destroy()).pipe(response);
      });
      response.on('close', () => onwards.destroy());
      request.pipe(onwards);
    }),
  );

/** TLS before a daemon, with a certificate of the authority. */
export const tlsWay = async (target: string, { cert, key }: Authority): Promise<Way> => {
  const port = Number(new URL(target).port);
  return await started(
    createTlsServer({ cert, key, ALPNProtocols: ['http/1.1'] }, (socket) =>
      pipe(socket, connect(port, '127.0.0.1')),
    ),
  );
};

/**
 * A proxy that leads every name to the daemon: what is spoken is TLS with the authority's certificate, as behind a
 * wildcard name.
 */
export const wayOfNames = async (target: string, authority: Authority): Promise<Way> => {
  const inner = await tlsWay(target, authority);
  const proxy = createServer();
  proxy.on('connect', (_request, socket: Socket) => {
    socket.write('HTTP/1.1 200 OK\r\n\r\n');
    pipe(socket, connect(inner.port, '127.0.0.1'));
  });
  const outer = await started(proxy);
  return {
    port: outer.port,
    stop: () => {
      outer.stop();
      inner.stop();
    },
  };
};

const pipe = (socket: Socket, to: Socket): void => {
  socket.on('error', () => to.destroy()).pipe(to);
  to.on('error', () => socket.destroy()).pipe(socket);
};

const started = async (server: Server): Promise<Way> => {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    stop: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
};
