import {
  createServer as createHttp,
  type RequestListener,
  type Server,
  type ServerOptions,
} from 'node:http';
import { createServer as createHttps, Server as HttpsServer } from 'node:https';
import {
  createServer as createPlain,
  type AddressInfo,
  type Server as PlainServer,
  type Socket,
} from 'node:net';
import type { PortBounds } from '../limits/bounds.ts';

/** In PEM. */
export interface TlsIdentity {
  readonly cert: string;
  readonly key: string;
}

export const MAX_HEADER_BYTES = 16_384;

/** HTTP/1.1; with an identity, over TLS 1.2 or later. Throws if the identity is invalid. */
export const createListener = (
  limits: PortBounds,
  tls: TlsIdentity | undefined,
  onRequest: RequestListener,
): Server => {
  const options: ServerOptions = {
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.min(1_000, limits.headersTimeoutMs),
    maxHeaderSize: MAX_HEADER_BYTES,
    requireHostHeader: false,
    noDelay: true,
  };
  const server = tls
    ? createHttps(
        {
          ...options,
          ...tls,
          minVersion: LEAST_TLS,
          handshakeTimeout: limits.headersTimeoutMs,
          ALPNProtocols: ['http/1.1'],
        },
        onRequest,
      )
    : createHttp(options, onRequest);
  server.maxConnections = limits.maxConnections;
  const open = new Set<Socket>();
  connections.set(server, open);
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  return server;
};

const connections = new WeakMap<Server, ReadonlySet<Socket>>();

export const cutConnections = (server: Server): void => {
  server.closeAllConnections();
  for (const socket of connections.get(server) ?? []) socket.destroy();
};

const LEAST_TLS = 'TLSv1.2';

/** For new connections only. Throws if the identity is invalid. */
export const renewIdentity = (server: Server, tls: TlsIdentity): void => {
  if (server instanceof HttpsServer) server.setSecureContext({ ...tls, minVersion: LEAST_TLS });
};

/** The connection is then ready for HTTP. */
export const readyEvent = (tls: TlsIdentity | undefined): 'connection' | 'secureConnection' =>
  tls ? 'secureConnection' : 'connection';

export const startListening = (
  server: PlainServer,
  listen: { readonly host: string; readonly port: number },
) =>
  new Promise<{ host: string; port: number }>((resolve, reject) => {
    server.once('error', reject);
    server.listen(listen.port, listen.host, () => {
      server.off('error', reject);
      const address = server.address() as AddressInfo;
      resolve({ host: address.address, port: address.port });
    });
  });

/** Rejects as `startListening` would. */
export const requireFree = async (listen: {
  readonly host: string;
  readonly port: number;
}): Promise<number> => {
  const server = createPlain((socket) => socket.destroy());
  await startListening(server, listen);
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return listen.port;
};
