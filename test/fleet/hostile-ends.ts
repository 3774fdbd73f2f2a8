import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { acceptLink, dialLink } from '../../src/fleet/link/link-socket.ts';

/** How a worker asks for a link: an upgrade to WebSocket. */
export const HELLO = [
  'GET /fleet/link HTTP/1.1',
  'Host: hub',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  '\r\n',
].join('\r\n');

/** Dials a manager as a worker does; resolves with the connection, for HTTP/2 of a test's own. */
export const dialled = (port: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    dialLink(new URL(`ws://127.0.0.1:${port}/fleet/link`), {
      withinMs: 60_000,
      opened: (socket) => resolve(quiet(socket)),
      failed: (why) => reject(new Error(why)),
    });
  });

export interface TestManager {
  readonly port: number;
  /** The next connection of a worker's. */
  readonly linked: () => Promise<Socket>;
  readonly stop: () => Promise<void>;
}

/** Listens for workers in a manager's place. */
export const inManagersPlace = async (
  connected: (socket: Socket) => void = () => undefined,
): Promise<TestManager> => {
  const sockets: Socket[] = [];
  const waiting: ((socket: Socket) => void)[] = [];
  const server = createServer().on('upgrade', (request, stream, first) => {
    const socket = quiet(stream as Socket);
    sockets.push(socket);
    void acceptLink(request, socket, first).then(
      () => {
        connected(socket);
        waiting.shift()?.(socket);
      },
      () => socket.destroy(),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    linked: () => new Promise((resolve) => void waiting.push(resolve)),
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => void server.close(resolve));
    },
  };
};

const quiet = (socket: Socket): Socket => {
  socket.on('error', () => undefined);
  socket.once('end', () => socket.destroy());
  return socket;
};
