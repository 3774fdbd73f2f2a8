import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../contracts/clock.ts';
import { invalidArgument, Refusal } from '../../model/refusals.ts';
import type { Operations } from '../../services/operations.ts';
import { createApp, type AppDeps, type RequestWatchers } from './app.ts';
import { awaitsContinue, hasBody } from '../corridor/request-body.ts';
import { closeWithConnection, InFlight, stopServing } from './in-flight.ts';
import type { Admission } from '../limits/admission.ts';
import type { Clients } from '../limits/clients.ts';
import { edgeAnswer, errorAnswer, type ErrorAnswer } from '../reply/error-table.ts';
import { EventStreams } from '../reply/event-streams.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { unhurried } from '../reply/unhurried.ts';
import {
  createListener,
  MAX_HEADER_BYTES,
  readyEvent,
  renewIdentity,
  startListening,
  type TlsIdentity,
} from './listener.ts';
import { prepared, turnAway } from '../limits/prepared-answer.ts';
import { endWithError } from '../corridor/raw-answer.ts';
import { takeBearer, takeTarget } from '../limits/request-head.ts';

export interface HttpServerDeps extends Pick<AppDeps, 'people'> {
  readonly operations: Operations;
  readonly clock: Clock;
  readonly watchers: RequestWatchers;
  readonly terms: AppDeps['terms'];
  /** Shared by all ports, so that limits of keys and tenants span them. */
  readonly admission: Admission;
  readonly gateway?: Pick<Gateway, 'takes' | 'answer'>;
  readonly tls?: TlsIdentity;
  readonly clients: Clients;
  /** Without it, and for other protocols, an upgrade is answered as a plain request. */
  readonly upgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
}

export interface HttpServer {
  readonly server: Server;
  start(listen: {
    readonly host: string;
    readonly port: number;
  }): Promise<{ readonly host: string; readonly port: number }>;
  /** For a connection that another listener accepted. */
  readonly accept: (connection: Duplex) => void;
  /** For new TLS connections. Throws if the certificate is invalid. */
  renew(tls: TlsIdentity): void;
  /**
   * Closes connections after their next answer, so that clients move to another replica. Still
   * serves new ones.
   */
  leave(): void;
  /**
   * Lets requests finish for `graceMs`, then answers 503 and cuts the rest. Waits at most 2 s for
   * aborted operations.
   */
  stop(graceMs: number): Promise<void>;
}

export const createHttpServer = (deps: HttpServerDeps): HttpServer => {
  const { clock, operations, watchers, admission, clients } = deps;
  const { log } = watchers;
  let leaving = false;
  let stopping = false;
  const inFlight = new InFlight();
  const streams = new EventStreams({ clock, log, stallMs: admission.bounds.answerStallMs });
  const handle = createApp({
    ...{ operations, watchers, admission, streams, clients },
    terms: deps.terms,
    people: deps.people,
    stopping: () => stopping,
  }).callback();
  const begin = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (await admission.begin(request, response)) await handle(request, response);
  };
  /** A surface port gives turns later, since a sandbox's token names no tenant. */
  const answerAtGateway = async (
    gateway: NonNullable<typeof deps.gateway>,
    ...[request, response]: Parameters<RequestListener>
  ): Promise<void> => {
    if (deps.terms.surface || (await admission.begin(request, response)))
      await gateway.answer(request, response, { stopping });
  };
  const onRequest: RequestListener = (request, response) => {
    // The previous answer announced the close.
    if (request.socket.writableEnded) return void request.socket.destroy();
    closeWithConnection(request, response);
    if (leaving) response.shouldKeepAlive = false;
    const hasTarget = takeTarget(request);
    const { gateway } = deps;
    if (deps.terms.surface) deps.terms.surface.adopt(request);
    // an endpoint's Authorization belongs to the program behind it
    else if (!gateway?.takes(request)) takeBearer(request);
    if (admission.turnsAway(request, response)) return;
    if (!hasTarget) return turnAway(request, response, NO_REQUEST);
    inFlight.add(request, response);
    const handled = gateway?.takes(request)
      ? answerAtGateway(gateway, request, response)
      : begin(request, response);
    void handled.finally(() => {
      inFlight.settled(response);
      admission.unread.follow(response);
    });
  };
  const server = createListener(admission.bounds, deps.tls, onRequest);
  server.on('connection', (socket: Socket) => admission.connect(socket));
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    awaitsContinue.add(request);
    onRequest(request, response);
  });
  server.on('checkExpectation', onRequest);
  server.on('connect', (_request, socket: Duplex) =>
    endWithError(
      socket,
      errorAnswer(new Refusal('METHOD_NOT_ALLOWED', 'CONNECT is not possible here'), ''),
    ),
  );
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) =>
    refuseBytes(error, socket, inFlight),
  );
  if (deps.upgrade)
    server.on(
      'upgrade',
      handOver({ server, inFlight, ready: readyEvent(deps.tls), upgrade: deps.upgrade }),
    );

  return {
    server,
    start: (listen) => startListening(server, listen),
    accept: (connection) => {
      server.emit(readyEvent(deps.tls), connection);
    },
    renew: (tls) => {
      renewIdentity(server, tls);
    },
    leave: () => {
      leaving = true;
      inFlight.closeAfterAnswers();
    },
    stop: async (graceMs) => {
      leaving = stopping = true;
      streams.stop();
      await stopServing(server, inFlight, graceMs);
    },
  };
};

type Upgrade = NonNullable<HttpServerDeps['upgrade']>;

interface HandOver {
  readonly server: Server;
  readonly inFlight: InFlight;
  readonly ready: string;
  readonly upgrade: Upgrade;
}

const handOver =
  ({ server, inFlight, ready, upgrade }: HandOver): Upgrade =>
  (request, socket, head) => {
    // RFC 6455, 4.1: a GET without a body.
    if (
      request.headers.upgrade?.toLowerCase() !== 'websocket' ||
      request.method !== 'GET' ||
      hasBody(request) ||
      !takeTarget(request)
    ) {
      restoreRequest(request, socket, head);
      server.emit(ready, socket);
      return;
    }
    inFlight.upgraded.add(socket);
    socket.once('close', () => inFlight.upgraded.delete(socket));
    upgrade(request, socket, head);
  };

const UPGRADE_HEADERS: ReadonlySet<string> = new Set(['upgrade', 'connection', 'http2-settings']);

/**
 * Parses the request again without upgrade headers: Node takes every upgrade out of HTTP, and
 * Java's HttpClient asks for h2c with every request.
 */
const restoreRequest = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
  const lines = [`${request.method ?? 'GET'} ${request.url ?? '/'} HTTP/${request.httpVersion}`];
  for (let at = 0; at < request.rawHeaders.length; at += 2) {
    const name = request.rawHeaders[at] ?? '';
    if (!UPGRADE_HEADERS.has(name.toLowerCase()))
      lines.push(`${name}: ${request.rawHeaders[at + 1] ?? ''}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
};

/**
 * For a malformed or late request. If an earlier answer is in progress, only closes the connection.
 */
const refuseBytes = (error: NodeJS.ErrnoException, socket: Duplex, inFlight: InFlight): void => {
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && unhurried.has(socket)) return;
  const pending = inFlight.of(socket);
  if (
    error.code === 'ECONNRESET' ||
    pending?.response.headersSent === true ||
    pending?.request.complete === true
  ) {
    return void socket.destroy();
  }
  // without TLS, no answer is possible
  if (/^ERR_(SSL|TLS)/.test(error.code ?? '')) return void socket.destroy();
  endWithError(socket, answerTo(error.code));
};

const answerTo = (code: string | undefined): ErrorAnswer => {
  if (code === 'HPE_HEADER_OVERFLOW')
    return edgeAnswer(
      'REQUEST_HEADERS_TOO_LARGE',
      `the headers are larger than ${MAX_HEADER_BYTES} bytes`,
    );
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return edgeAnswer('REQUEST_TIMEOUT', 'the request did not arrive in time');
  return errorAnswer(notHttp(), '');
};

const notHttp = (): Refusal => invalidArgument('request', 'is not valid HTTP');

const NO_REQUEST = prepared(notHttp());
