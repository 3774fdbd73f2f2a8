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

/** Certificate chain and private key in PEM. */
export interface TlsIdentity {
  readonly cert: string;
  readonly key: string;
}

export const MAX_HEADER_BYTES = 16_384;

/**
 * Creates an HTTP/1.1 server; with an identity, over TLS 1.2 or later. Throws if the identity is
 * invalid.
 */
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

/** Connections by server, including those before the TLS handshake and after an upgrade. */
const connections = new WeakMap<Server, ReadonlySet<Socket>>();

/** Destroys all connections in any state. */
export const cutConnections = (server: Server): void => {
  server.closeAllConnections();
  for (const socket of connections.get(server) ?? []) socket.destroy();
};

const LEAST_TLS = 'TLSv1.2';

/**
 * Uses another identity for new connections; existing ones keep theirs. Throws if the identity is
 * invalid.
 */
export const renewIdentity = (server: Server, tls: TlsIdentity): void => {
  if (server instanceof HttpsServer) server.setSecureContext({ ...tls, minVersion: LEAST_TLS });
};

/** Event for a connection that is ready for HTTP. */
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

/** Resolves with the port if it is free; 0 always is. Rejects as `startListening` would. */
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
