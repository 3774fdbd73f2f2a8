import {
  ServerResponse,
  type IncomingMessage,
  request as httpRequest,
  STATUS_CODES,
  type ClientRequest,
} from 'node:http';
import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import { STALL_MS } from '../../http/gateway/exchange.ts';
import type { Gateway } from '../../http/gateway/gateway.ts';
import { readName } from '../../http/corridor/local-names.ts';
import { errorAnswer } from '../../http/reply/error-table.ts';
import { ClientGone, hasBody } from '../../http/corridor/request-body.ts';
import { giveError } from '../../http/corridor/raw-answer.ts';
import { requestIdFrom } from '../../http/limits/request-head.ts';
import { refuseUpgrade } from '../../http/terminal/refusals.ts';
import { passTaken } from './passed-answer.ts';
import { endpointHeaders, routeHeaders, answeredHeaders, passedHeaders } from './passed-headers.ts';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ApprovalGate } from '../../services/approvals/approval-gate.ts';
import { refuseHeld } from '../../services/approvals/refuse-held.ts';
import type { FleetOperations, WayToCluster } from '../replication/fleet-operations.ts';
import { FLEET_KEY_HEADER } from '../../model/fleet/identity-header.ts';
import { invalidToken, Refusal } from '../../model/refusals.ts';
import { tenantKey, type Caller } from '../../model/tenant.ts';
import type { Clients } from '../../http/limits/clients.ts';
import { readTarget } from '../../http/gateway/target.ts';
import { processTarget } from '../../http/terminal/process-request.ts';
import { tokenIn } from '../../http/terminal/request.ts';
import { PROCESS_OPERATIONS } from '../../http/terminal/terminal.ts';
import type { FleetDeps } from './fleet-router.ts';
import { broken, hasSoundStatus, MAX_ANSWER_HEADER_BYTES } from './pass-on.ts';

export interface FleetGatewayDeps extends PassUpgradeDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly gateway: Gateway;
  readonly upgrade: Gateway['upgrade'];
}

/**
 * Routes traffic of sandboxes on any cluster of a manager; other clusters' is forwarded without
 * inspection.
 */
export const fleetGateway = (deps: FleetGatewayDeps): Pick<Gateway, keyof Gateway> => {
  const { gateway, fleet } = deps;
  const clusterOf = (request: IncomingMessage): string | undefined => {
    const cluster = clusterIn(request.url ?? '');
    return cluster === fleet.clusterId ? undefined : cluster;
  };
  return {
    ...gateway,
    answer: async (request, response, terms) => {
      const cluster = clusterOf(request);
      if (cluster === undefined || terms.stopping)
        return await gateway.answer(request, response, terms);
      await answerEndpoint(deps, { cluster, request, response });
    },
    upgrade: (request, socket, head) => {
      const cluster = clusterOf(request);
      if (cluster === undefined) return deps.upgrade(request, socket, head);
      socket.on('error', () => socket.destroy());
      const requestId = requestIdFrom(request.headers['x-request-id']);
      passUpgrade(deps, { cluster, request, socket, head, requestId }).catch((error: unknown) => {
        if (socket.destroyed || error instanceof ClientGone) return;
        if (errorAnswer(error, requestId).body.errorCode === 'INTERNAL')
          deps.log.error({ requestId, error }, 'upgrade-not-forwarded');
        refuseUpgrade(socket, error, { requestId, clock: deps.clock });
      });
    },
  };
};

const BY_ID = /^(?:\/v1)?\/sandboxes\/([^/?]{1,256})\//;

const clusterIn = (url: string): string | undefined =>
  BY_TOKEN.exec(url)?.[1] ?? readName('sandbox', BY_ID.exec(url)?.[1] ?? '')?.cluster;

interface Asked {
  readonly cluster: string;
  readonly request: IncomingMessage;
}

const answerEndpoint = async (
  { fleet, passing, clients, log, gate }: FleetGatewayDeps,
  { cluster, request, response }: Asked & { readonly response: ServerResponse },
): Promise<void> => {
  const requestId = requestIdFrom(request.headers['x-request-id']);
  const gone = new AbortController();
  let forgetKey = (): void => undefined;
  response.once('close', () => gone.abort(new ClientGone('the client left')));
  try {
    const caller = await clients.authenticate(request);
    permitWay(gate, request, caller);
    forgetKey = clients.followKey(caller, () => request.socket.destroy());
    const way = passing.wayTo(fleet, cluster);
    const answer = await passing.pass({
      way,
      caller,
      request,
      body: hasBody(request) ? request : undefined,
      requestId,
      signal: gone.signal,
    });
    response.writeHead(answer.statusCode ?? 0, {
      ...endpointHeaders(answer, { url: request.url ?? '', base: clients.base(request) }),
      ...routeHeaders(way),
      'X-Request-Id': requestId,
    });
    await passTaken(answer, response, { clock: passing.clock, stallMs: STALL_MS });
  } catch (error) {
    if (response.headersSent || response.destroyed) return void response.destroy();
    const refused = errorAnswer(error, requestId);
    if (refused.body.errorCode === 'INTERNAL')
      log.error({ requestId, error }, 'request-endpoint-failed');
    giveError(request, response, { answer: refused, requestId });
  } finally {
    forgetKey();
  }
};

const BY_TOKEN = /^(?:\/v1)?\/ws\/clusters\/([^/?]{1,64})\/sandboxes\//;

const AGREE_MS = 30_000;
/** A forwarded connection has 11 listeners of one event; Node warns of a leak. */
const MOST_LISTENERS = 16;

interface PassUpgradeDeps extends FleetDeps {
  readonly clients: Clients;
  readonly gate: Pick<ApprovalGate, 'rulesFor'>;
  /** Undefined if the key is no longer valid. */
  readonly keyOwner: (keyId: string) => Caller | undefined;
}

interface AskedUpgrade {
  readonly cluster: string;
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly requestId: string;
}

/**
 * A key identifies the caller, and a token its owner if this replica issued it. Otherwise the
 * worker's answer names the owner's key, or only the worker checks the token. Resolves when the
 * connection ends. Rejects if no answer comes, also with CLUSTER_UNAVAILABLE.
 */
const passUpgrade = async (deps: PassUpgradeDeps, asker: AskedUpgrade): Promise<void> => {
  const { fleet, passing, clients, keyOwner } = deps;
  const { cluster, request, socket, head, requestId } = asker;
  const caller = await whoUpgrades(deps, asker);
  if (socket.destroyed) throw new ClientGone('the client left');
  const way = caller ? passing.wayTo(fleet, cluster) : wayOfStranger(fleet, cluster);
  let release = passing.hold(way, caller ? tenantKey(caller) : '');
  const follow = (owner: Caller): (() => void) => clients.followKey(owner, () => socket.destroy());
  let forgetKey = caller ? follow(caller) : () => undefined;
  try {
    if (socket.destroyed) return; // the key was revoked or has expired
    const asked = askUpgrade({ way, caller, request, requestId });
    const callOff = passing.lookAt(way, () => asked.destroy());
    const callOffWhole = passing.clock.at(passing.clock.now() + AGREE_MS, () => asked.destroy());
    const leave = (): void => void asked.destroy();
    socket.once('close', leave);
    const { answer, stream } = await passing.passed
      .counted(cluster, {
        hasLeft: () => socket.destroyed,
        work: () => upgradeAnswerTo(asked, way),
      })
      .finally(() => {
        callOff();
        callOffWhole();
        socket.off('close', leave);
      });
    if (!caller && !stream && BEFORE_THE_TOKEN.has(answer.statusCode ?? 0)) return refuse(answer);
    const keyId = caller ? undefined : answer.headers[FLEET_KEY_HEADER];
    if (stream && typeof keyId === 'string') {
      const owner = keyOwner(keyId);
      if (!owner) return refuse(stream);
      forgetKey = follow(owner);
      if (socket.destroyed) return refuse(stream);
      release();
      release = () => undefined;
      release = holdOr(stream, () => passing.hold(way, tenantKey(owner)));
    }
    socket.write(headOf(answer, { ...routeHeaders(way), 'X-Request-Id': requestId }), 'latin1');
    await (stream ? relay(stream, socket, head) : pipeline(answer, socket));
  } finally {
    forgetKey();
    release();
  }
};

const whoUpgrades = async (
  { passing, clients, gate }: PassUpgradeDeps,
  { cluster, request }: AskedUpgrade,
): Promise<Caller | undefined> => {
  if (BY_TOKEN.test(request.url ?? ''))
    return passing.tokens.ownerOf(cluster, tokenIn(request) ?? '');
  const caller = await clients.authenticate(request);
  permitWay(gate, request, caller);
  return caller;
};

const holdOr = (stream: Duplex, hold: () => () => void): (() => void) => {
  try {
    return hold();
  } catch (error) {
    stream.destroy();
    throw error;
  }
};

const relay = async (stream: Duplex, socket: Duplex, head: Buffer): Promise<void> => {
  if (head.length > 0) stream.write(head);
  // the two pipelines add 8 listeners to the server's own
  socket.setMaxListeners(MOST_LISTENERS);
  await Promise.allSettled([pipeline(socket, stream), pipeline(stream, socket)]);
};

/** Refuses access that the manager's approval rules gate. */
export const permitWay = (
  gate: PassUpgradeDeps['gate'],
  { url = '' }: IncomingMessage,
  caller: Caller,
): void => {
  const { sandboxId = '', endpointName = '' } = readTarget(url) ?? {};
  const process = processTarget(url);
  if (process) refuseHeld(gate, caller, { operations: PROCESS_OPERATIONS, params: { ...process } });
  else
    refuseHeld(gate, caller, { operations: ['openEndpoint'], params: { sandboxId, endpointName } });
};

/** A worker answers so before it has checked a token, or to an invalid one. */
const BEFORE_THE_TOKEN: ReadonlySet<number> = new Set([400, 401, 403, 404, 426]);

/** The error must not reveal which clusters exist. */
const wayOfStranger = ({ wayTo }: FleetOperations, cluster: string): WayToCluster => {
  try {
    return wayTo(cluster);
  } catch (error) {
    throw error instanceof Refusal ? invalidToken() : error;
  }
};

const refuse = (stream: Duplex | IncomingMessage): never => {
  stream.destroy();
  throw invalidToken();
};

interface Asking extends Pick<AskedUpgrade, 'request' | 'requestId'> {
  readonly way: WayToCluster;
  readonly caller: Caller | undefined;
}

const askUpgrade = ({ way, caller, request, requestId }: Asking): ClientRequest => {
  const target = request.url ?? '/';
  const identity =
    caller && way.identify(caller, { method: 'GET', target, idempotencyKey: undefined });
  const asked = httpRequest({
    createConnection: () => way.dial(),
    method: 'GET',
    path: target,
    maxHeaderSize: MAX_ANSWER_HEADER_BYTES,
    headers: [
      ...passedHeaders(request, { identity, requestId }),
      ...['Connection', 'Upgrade', 'Upgrade', 'websocket'],
    ],
  });
  return asked.end();
};

interface Answered {
  readonly answer: IncomingMessage;
  /** Absent if the worker refused the upgrade. */
  readonly stream?: Duplex;
}

const upgradeAnswerTo = (asked: ClientRequest, way: WayToCluster): Promise<Answered> =>
  new Promise((resolve, reject) => {
    asked.on('error', () => reject(broken(way)));
    asked.once('close', () => reject(broken(way))); // no effect after an answer
    asked.once('response', (answer) => {
      if (hasSoundStatus(answer)) return resolve({ answer });
      asked.destroy();
    });
    asked.once('upgrade', (answer, stream, first) => {
      stream.on('error', () => stream.destroy());
      if (first.length > 0) stream.unshift(first);
      resolve({ answer, stream });
    });
  });

const headOf = (answer: IncomingMessage, also: Readonly<Record<string, string>>): string => {
  const { statusCode = 101 } = answer;
  const headers = { ...answeredHeaders(answer), ...also };
  const lines = [
    `HTTP/1.1 ${statusCode} ${STATUS_CODES[statusCode] ?? ''}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(statusCode === 101 ? ['Connection: Upgrade', 'Upgrade: websocket'] : ['Connection: close']),
  ];
  return `${lines.join('\r\n')}\r\n\r\n`;
};
