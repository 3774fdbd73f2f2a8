import { once } from 'node:events';
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import {
  createServer as createTcpServer,
  type AddressInfo,
  type Server as TcpServer,
  type Socket,
} from 'node:net';
import type { PortConnection } from '../../src/contracts/sandbox-driver.ts';
import { clientsOf } from '../../src/http/limits/clients.ts';
import { createGateway, type GatewayDeps } from '../../src/http/gateway/gateway.ts';
import { dialHere, dialThroughChannel } from '../support/fakes/channel-dial.ts';
import { eventually } from '../support/harness/eventually.ts';
import { anEngine } from '../support/harness/engine-operations.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import type { AdmissionDeps } from '../../src/http/limits/admission.ts';
import type { AdmissionBounds } from '../../src/http/limits/bounds.ts';
import { aServer, type TestServer } from './a-server.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

/** A listening API with a gateway, and a running sandbox of the tenant's. */
export interface GatewayUnderTest extends TestServer {
  readonly id: string;
  /** The key of the tenant. */
  readonly key: string;
  /** Makes `web` lead to what this answers. */
  readonly serve: (
    answer: (...exchange: Parameters<RequestListener>) => unknown,
  ) => Promise<Server>;
  /** Makes `web` lead to a port of this machine. */
  readonly lead: (port: number) => void;
  /** Makes `web` lead to what does with bytes as it likes. */
  readonly serveBytes: (take: (socket: Socket) => void) => Promise<TcpServer>;
}

/** How the gateway may reach an endpoint: on this machine by a socket, in a Pod by a channel. */
export const CONNECTIONS = {
  'a socket': undefined,
  'a channel': dialThroughChannel,
} as const;

/** What leads to endpoints. */
export interface EndpointWay {
  /** To a port of this machine; by a socket where unset. */
  readonly dial?: (port: number, signal: AbortSignal) => Promise<PortConnection>;
  /**
   * The address of this machine that servers behind endpoints listen on; the loopback where unset.
   */
  readonly host?: string;
  /** What buffers on the way to the server may hold, in bytes; 32 MiB where unset. */
  readonly mostHeld?: number;
}

/** The port of `web`, as a server in the sandbox knows it. */
export const WEB_PORT = 8_080;

interface GivenGateway
  extends EndpointWay, Pick<GatewayDeps, 'audit' | 'gate'>, Pick<AdmissionDeps, 'turns'> {
  readonly limits?: Partial<AdmissionBounds>;
  /** Of `web`, in the sandbox. */
  readonly port?: number;
}

export const aGateway = async ({
  dial = dialHere,
  port = WEB_PORT,
  host = '127.0.0.1',
  audit,
  gate,
  ...given
}: GivenGateway = {}): Promise<GatewayUnderTest> => {
  const operations = anEngine({ spec: { endpoints: [{ name: 'web', port }] } });
  let leadsTo = 1;
  operations.driver.dial = (_id, _port, signal) => dial(leadsTo, signal);
  const gateway = createGateway({
    metrics: silentMetrics,
    operations,
    clients: clientsOf({
      operations,
      clock: operations.clock,
      log: quietLog,
    }),
    log: quietLog,
    clock: operations.clock,
    audit,
    gate,
    clusterId: 'local',
  });
  const server = await aServer({ operations, gateway, upgrade: gateway.upgrade, ...given });
  const own = { ...server, operations };
  const key = await operations.key('blue', 'ada');
  const opened: (Server | TcpServer)[] = [];
  const listening = async <T extends Server | TcpServer>(upstream: T): Promise<T> => {
    upstream.listen(0, host);
    await once(upstream, 'listening');
    opened.push(upstream);
    leadsTo = (upstream.address() as AddressInfo).port;
    return upstream;
  };
  await operations.createPool(operations.authenticate(key), {
    name: 'default',
    source: { templateName: 'default' },
    replicas: 1,
    labels: {},
    annotations: {},
  });
  await operations.settled();
  const { id } = await operations.claimSandbox(operations.authenticate(key), {
    poolName: 'default',
  });
  return {
    ...own,
    id,
    key,
    lead: (to) => {
      leadsTo = to;
    },
    serve: (answer) =>
      listening(createServer((request, response) => void answer(request, response))),
    serveBytes: (take) =>
      listening(
        createTcpServer((socket) => {
          socket.on('error', () => {});
          take(socket);
        }),
      ),
    stop: async (graceMs) => {
      gateway.stop();
      for (const upstream of opened) {
        if ('closeAllConnections' in upstream) upstream.closeAllConnections();
        upstream.close();
      }
      await server.stop(graceMs);
    },
  };
};

export interface Asked {
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders | readonly string[];
  readonly body?: Buffer | string;
  readonly key?: string;
}

/**
 * Sends a request to the endpoint and resolves with the answer's head; what comes then is read from
 * it.
 */
export const ask = async (
  under: GatewayUnderTest,
  path: string,
  { method = 'GET', headers = {}, body, key = under.key }: Asked = {},
): Promise<IncomingMessage> => {
  const request = httpRequest({
    host: '127.0.0.1',
    port: under.port,
    method,
    path: `/sandboxes/${under.id}/endpoints/web${path}`,
    agent: false,
    headers: { ...headers, ...(key === undefined ? {} : { 'SERVICE-API-KEY': key }) },
  });
  request.on('error', () => {});
  request.end(body);
  const [response]: IncomingMessage[] = (await once(request, 'response')) as IncomingMessage[];
  if (!response) throw new Error('no answer');
  return response;
};

/** An answer without end, as fast as it is taken. */
export class EndlessAnswer {
  /** Bytes that the server could write so far. */
  written = 0;
  isClosed = false;

  give(response: ServerResponse): void {
    const piece = Buffer.alloc(1 << 20);
    const write = (): void => {
      while (!response.destroyed) {
        this.written += piece.length;
        if (!response.write(piece)) break;
      }
    };
    response.on('drain', write).once('close', () => {
      this.isClosed = true;
    });
    write();
  }

  /** Resolves once nothing more is taken. */
  async untilItWaits(): Promise<void> {
    let before = 0;
    await eventually(() => {
      const waits = this.written > 0 && this.written === before;
      before = this.written;
      return waits;
    }, 'the sandbox waits');
  }
}

export const textOf = async (response: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
};
