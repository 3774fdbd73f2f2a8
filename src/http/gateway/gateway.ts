import { ServerResponse, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { AuditSink } from '../../contracts/audit.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import type { Metrics } from '../../contracts/metrics.ts';
import { containFaults } from '../../lib/fault-scope.ts';
import { Refusal, unavailable } from '../../model/refusals.ts';
import { INTERPRETER_PORT } from '../../model/sandbox.ts';
import type { Caller } from '../../model/tenant.ts';
import type { OpenEndpoint } from '../../actors/sandbox/commands/sandbox-operations.ts';
import type { ApprovalGate } from '../../services/approvals/approval-gate.ts';
import { refuseHeld } from '../../services/approvals/refuse-held.ts';
import type { Operations } from '../../services/operations.ts';
import { unhurried } from '../reply/unhurried.ts';
import type { Clients } from '../limits/clients.ts';
import { errorAnswer } from '../reply/error-table.ts';
import { exchange } from './exchange.ts';
import { GatewayAgent } from './agent.ts';
import { isForEndpoint, readTarget, type EndpointTarget } from './target.ts';
import { localName } from '../corridor/local-names.ts';
import { ClientGone } from '../corridor/request-body.ts';
import { giveError } from '../corridor/raw-answer.ts';
import { requestIdFrom } from '../limits/request-head.ts';
import { upgradeEndpoint } from './upgrade.ts';

export interface GatewayDeps {
  readonly operations: Pick<Operations, 'openEndpoint'>;
  readonly clients: Clients;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly audit?: Pick<AuditSink, 'count'>;
  readonly gate?: Pick<ApprovalGate, 'rulesFor'>;
  /** Optional prefix of a sandbox's id. */
  readonly clusterId: string;
}

/**
 * Forwards requests and WebSockets to `/sandboxes/{sandboxId}/endpoints/{name}/…`, until the
 * caller's key is revoked. Sandpool's own refusals are JSON.
 */
export interface Gateway {
  readonly takes: (request: IncomingMessage) => boolean;
  /** Never rejects. */
  readonly answer: (
    request: IncomingMessage,
    response: ServerResponse,
    options: { readonly stopping: boolean },
  ) => Promise<void>;
  /** Never throws. */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  readonly stop: () => void;
}

export const createGateway = (deps: GatewayDeps): Gateway => {
  const agent = new GatewayAgent();

  const answer: Gateway['answer'] = (request, response, terms) =>
    containFaults(
      () => {
        request.socket.destroy();
      },
      () => answerWithin(request, response, terms),
    );

  const answerWithin: Gateway['answer'] = async (request, response, { stopping }) => {
    const target = readTarget(request.url ?? '');
    const requestId = requestIdFrom(request.headers['x-request-id']);
    const seen = {
      requestId,
      method: (request.method ?? '').slice(0, 32),
      target,
      startedAt: deps.clock.now(),
    };
    unhurried.add(request.socket);
    try {
      const opened = open(deps, { request, target, stopping });
      const { caller, endpoint } = opened instanceof Promise ? await opened : opened;
      countOpen(deps, caller, proven(target));
      const forgetKey = deps.clients.followKey(caller, () => {
        request.socket.destroy();
      });
      try {
        await exchange(request, response, {
          endpoint,
          target: proven(target),
          requestId,
          clock: deps.clock,
          agent,
          clients: deps.clients,
        });
      } finally {
        forgetKey();
        endpoint.close();
      }
      note(deps, seen, { status: response.statusCode });
    } catch (error) {
      refuse(deps, { request, response, error, seen });
    } finally {
      unhurried.delete(request.socket);
    }
  };

  const upgrade: Gateway['upgrade'] = (request, socket, head) => {
    containFaults(
      () => {
        socket.destroy();
      },
      () => {
        upgradeWithin(request, socket, head);
      },
    );
  };

  const upgradeWithin: Gateway['upgrade'] = (request, socket, head) => {
    socket.on('error', () => socket.destroy());
    const response = new ServerResponse(request);
    const target = readTarget(request.url ?? '');
    const requestId = requestIdFrom(request.headers['x-request-id']);
    const seen = { requestId, method: 'UPGRADE', target, startedAt: deps.clock.now() };
    const refused = (error: unknown): void => refuse(deps, { request, response, error, seen });
    // A declined upgrade ends the connection with a normal answer.
    response.shouldKeepAlive = false;
    response.assignSocket(request.socket);
    response.once('finish', () => request.socket.destroySoon());
    const relayed = async (): Promise<void> => {
      const opened = open(deps, { request, target, stopping: false });
      const { caller, endpoint } = opened instanceof Promise ? await opened : opened;
      countOpen(deps, caller, proven(target));
      const forgetKey = deps.clients.followKey(caller, () => {
        request.socket.destroy();
      });
      try {
        note(deps, seen, {
          status: await upgradeEndpoint(
            { request, response, head },
            {
              endpoint,
              target: proven(target),
              requestId,
              clock: deps.clock,
              agent,
              clients: deps.clients,
            },
          ),
        });
      } finally {
        forgetKey();
        endpoint.close();
      }
    };
    relayed().catch(refused);
  };

  return {
    takes: isForEndpoint,
    answer,
    upgrade,
    stop: () => agent.destroy(),
  };
};

interface Opened {
  readonly caller: Caller;
  readonly endpoint: OpenEndpoint;
}
interface Asked {
  readonly request: IncomingMessage;
  readonly target: EndpointTarget | undefined;
}

/**
 * Synchronous if key and sandbox are known here: bytes after the head must not be read before a
 * refusal.
 */
const open = (
  deps: GatewayDeps,
  { stopping, ...asked }: Asked & { readonly stopping: boolean },
): Opened | Promise<Opened> => {
  if (stopping) throw unavailable('the daemon is stopping');
  const caller = deps.clients.authenticate(asked.request);
  return caller instanceof Promise ? openLater(caller, deps, asked) : openFor(caller, deps, asked);
};

const openLater = async (
  authenticated: Promise<Caller>,
  deps: GatewayDeps,
  asked: Asked,
): Promise<Opened> => {
  const caller = await authenticated;
  requireClient(asked.request);
  return await openFor(caller, deps, asked);
};

const requireClient = ({ socket }: IncomingMessage): void => {
  if (socket.destroyed) throw new ClientGone('the client left');
};

const openFor = (
  caller: Caller,
  deps: GatewayDeps,
  { request, target }: Asked,
): Opened | Promise<Opened> => {
  const { operations, clusterId } = deps;
  const { sandboxId: named, endpointName } = proven(target);
  const coding = request.headers['transfer-encoding'];
  if (coding !== undefined && coding.toLowerCase() !== 'chunked')
    throw new Refusal('UNSUPPORTED_MEDIA_TYPE', 'the body must not be encoded (Transfer-Encoding)');
  const sandboxId = localName('sandbox', named, { clusterId, field: 'sandboxId' });
  const { gate } = deps;
  const params = { sandboxId, endpointName };
  if (gate) refuseHeld(gate, caller, { operations: ['openEndpoint'], params });
  const opened = operations.openEndpoint(caller, sandboxId, endpointName);
  return opened instanceof Promise
    ? stillWanted(deps, caller, { opening: opened, request })
    : { caller, endpoint: unlessExec(deps, caller, opened) };
};

/** Refuses the interpreter's endpoint if a rule holds commands. */
const unlessExec = (
  { gate }: GatewayDeps,
  caller: Caller,
  endpoint: OpenEndpoint,
): OpenEndpoint => {
  if (!gate || endpoint.port !== INTERPRETER_PORT) return endpoint;
  const params = { sandboxId: endpoint.sandboxId };
  try {
    refuseHeld(gate, caller, { operations: ['execInSandbox'], params });
    return endpoint;
  } catch (error) {
    endpoint.close();
    throw error;
  }
};

const stillWanted = async (
  deps: GatewayDeps,
  caller: Caller,
  {
    opening,
    request,
  }: { readonly opening: Promise<OpenEndpoint>; readonly request: IncomingMessage },
): Promise<Opened> => {
  const endpoint = unlessExec(deps, caller, await opening);
  if (request.socket.destroyed) endpoint.close();
  requireClient(request);
  return { caller, endpoint };
};

const proven = (target: EndpointTarget | undefined): EndpointTarget => {
  if (!target) throw new Error('the request is not for an endpoint');
  return target;
};

const countOpen = (
  { audit }: GatewayDeps,
  caller: Caller,
  { sandboxId, endpointName }: EndpointTarget,
): void =>
  audit?.count({
    kind: 'open',
    caller,
    operation: 'openEndpoint',
    params: { sandboxId, endpointName },
  });

interface Seen {
  readonly requestId: string;
  readonly method: string;
  readonly target: EndpointTarget | undefined;
  readonly startedAt: number;
}

/** Logs no path below the endpoint, headers or bodies. */
const note = (
  { log, clock, metrics }: GatewayDeps,
  { requestId, method, target, startedAt }: Seen,
  { status, errorCode }: { readonly status: number; readonly errorCode?: string },
): void => {
  metrics.count('sandpool_http_requests_total', {
    method: 'any',
    route: '/sandboxes/{sandboxId}/endpoints/{endpointName}',
    status: `${Math.floor(status / 100)}xx`,
  }); // the sandbox chooses the status
  const fields = {
    requestId,
    method,
    path: target?.prefix.slice(0, 256),
    status,
    errorCode,
    durationMs: clock.now() - startedAt,
  };
  if (errorCode !== undefined) log.info(fields, 'endpoint-refused');
  else log.debug(fields, 'endpoint-request');
};

const refuse = (
  deps: GatewayDeps,
  {
    request,
    response,
    error,
    seen,
  }: {
    readonly request: IncomingMessage;
    readonly response: ServerResponse;
    readonly error: unknown;
    readonly seen: Seen;
  },
): void => {
  if (error instanceof ClientGone || response.headersSent || response.destroyed) {
    note(deps, seen, { status: response.statusCode });
    response.destroy();
    return;
  }
  const answer = errorAnswer(error, seen.requestId);
  const { status, body } = answer;
  if (body.errorCode === 'INTERNAL')
    deps.log.error({ requestId: seen.requestId, error }, 'request-endpoint-failed');
  else if (!(error instanceof Refusal))
    deps.log.warn({ requestId: seen.requestId, error }, 'endpoint-not-reached');
  note(deps, seen, { status, errorCode: body.errorCode });
  giveError(request, response, { answer: answer, requestId: seen.requestId });
};
