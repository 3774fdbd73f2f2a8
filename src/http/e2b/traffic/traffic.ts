import { ServerResponse, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { AuditSink } from '../../../contracts/audit.ts';
import type { Clock } from '../../../contracts/clock.ts';
import type { Log } from '../../../contracts/log.ts';
import type { Metrics } from '../../../contracts/metrics.ts';
import { GatewayAgent } from '../../gateway/agent.ts';
import { exchange, type ExchangeTerms } from '../../gateway/exchange.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import { upgradeEndpoint } from '../../gateway/upgrade.ts';
import type { Admission } from '../../limits/admission.ts';
import type { Clients } from '../../limits/clients.ts';
import { errorAnswer } from '../../reply/error-table.ts';
import { ClientGone } from '../../corridor/request-body.ts';
import { giveError } from '../../corridor/raw-answer.ts';
import { requestIdFrom } from '../../limits/request-head.ts';
import { unhurried } from '../../reply/unhurried.ts';
import { containFaults } from '../../../lib/fault-scope.ts';
import type { TextPairs } from '../../../model/claim-terms.ts';
import {
  CLAIM_KEY_HEADER,
  CLAIM_TERMS_HEADER,
  IDENTITY_HEADER,
} from '../../../model/fleet/identity-header.ts';
import { invalidToken, Refusal, sandboxNotFound, unavailable } from '../../../model/refusals.ts';
import { INTERPRETER_PORT } from '../../../model/sandbox.ts';
import type { Operations } from '../../../services/operations.ts';
import type { SandboxServices } from '../services/services.ts';
import { restIdOf } from '../sandbox-id.ts';
import { requireLive } from '../control/require-live.ts';
import { shownError, type ShownError } from '../shown-error.ts';
import { linkedAddressOf } from './over-links.ts';
import { TOKEN_HEADERS } from './token-headers.ts';
import { answerPreflight, isPreflight } from './cross-origin.ts';
import { isForSandbox, portNamedBy, SERVICES_PORT } from './address.ts';
import { admitted, type Admitted, type AdmissionDeps } from './admission.ts';

export interface TrafficDeps {
  readonly operations: AdmissionDeps['operations'] & Pick<Operations, 'getSandbox' | 'openPort'>;
  readonly terms: AdmissionDeps['terms'];
  readonly services: SandboxServices;
  readonly clients: Clients;
  readonly admission: Pick<Admission, 'admit' | 'count'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly audit: Pick<AuditSink, 'count'> | undefined;
}

/** Serves requests for sandboxes until the caller's key is revoked. */
export const sandboxTraffic = (deps: TrafficDeps): Gateway => {
  const agent = new GatewayAgent();

  const answerWithin: Gateway['answer'] = async (request, response, { stopping }) => {
    const seen = seenOf(deps, request);
    response.setMaxListeners(MOST_LISTENERS);
    response.setHeader('X-Request-Id', seen.requestId);
    unhurried.add(request.socket);
    try {
      if (stopping) throw unavailable('the daemon is stopping');
      const sandbox = await admitted(deps, request);
      const turn = deps.admission.admit(sandbox.caller, request);
      if (turn) await turn;
      if (request.socket.destroyed) throw new ClientGone('the client left');
      await whileKeyIsGood(deps, sandbox, {
        response,
        work: (signal) =>
          isHere(sandbox) && sandbox.port === SERVICES_PORT
            ? serve(deps, { request, response, sandbox, signal, requestId: seen.requestId })
            : through(deps, sandbox, {
                request,
                exchanged: (terms) => exchange(request, response, { ...terms, agent }),
              }),
      });
      note(deps, seen, { status: response.statusCode });
    } catch (error) {
      refuse(deps, { request, response, error, seen });
    } finally {
      unhurried.delete(request.socket);
    }
  };

  const upgradeWithin = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    socket.on('error', () => socket.destroy());
    const response = new ServerResponse(request);
    const seen = seenOf(deps, request);
    // A declined upgrade ends the connection with a normal answer.
    response.shouldKeepAlive = false;
    response.assignSocket(request.socket);
    response.once('finish', () => request.socket.destroySoon());
    const relayed = async (): Promise<void> => {
      if (!isTraffic(request)) throw new Refusal('NOT_FOUND', 'there is nothing at this path');
      const sandbox = await admitted(deps, request);
      deps.admission.count(sandbox.caller, request);
      // A signed link permits only its file, but an upgrade reaches the port.
      if (sandbox.by === 'signature') throw invalidToken();
      await whileKeyIsGood(deps, sandbox, {
        response,
        work: () =>
          through(deps, sandbox, {
            request,
            exchanged: async (terms) => {
              note(deps, seen, {
                status: await upgradeEndpoint({ request, response, head }, { ...terms, agent }),
              });
            },
          }),
      });
    };
    relayed().catch((error: unknown) => refuse(deps, { request, response, error, seen }));
  };

  return {
    takes: (request) => isPreflight(request) || isTraffic(request),
    answer: async (request, response, terms) => {
      if (isPreflight(request)) return answerPreflight(request, response);
      return await containFaults(
        () => {
          request.socket.destroy();
        },
        () => answerWithin(request, response, terms),
      );
    },
    upgrade: (request, socket, head) => {
      containFaults(
        () => {
          socket.destroy();
        },
        () => {
          upgradeWithin(request, socket, head);
        },
      );
    },
    stop: () => agent.destroy(),
  };
};

/** Followers and pipes exceed Node's default of 10. */
const MOST_LISTENERS = 20;

interface Served {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly sandbox: Admitted;
  readonly signal: AbortSignal;
  readonly requestId: string;
}

const serve = async (
  { operations, services }: TrafficDeps,
  { request, response, sandbox, signal, requestId }: Served,
): Promise<void> => {
  const { sandboxId, caller, by } = sandbox;
  if (by === 'nothing') throw invalidToken();
  if (!/^\/health(?:[?]|$)/.test(request.url ?? ''))
    return await services(request, response, { sandboxId, caller, by, requestId, signal });
  const { paused = false } = await requireLive(operations, caller, sandboxId);
  if (paused) throw sandboxNotFound();
  response.writeHead(204).end();
};

const whileKeyIsGood = async (
  { clients }: TrafficDeps,
  { caller, by }: Admitted,
  {
    response,
    work,
  }: { readonly response: ServerResponse; readonly work: (signal: AbortSignal) => Promise<void> },
): Promise<void> => {
  const gone = new AbortController();
  const leave = (): void => gone.abort(new ClientGone('the client left'));
  response.once('close', leave);
  const end = (): void => {
    leave();
    response.req.socket.destroy(); // an upgraded response has no socket
  };
  const forgetKey = by === 'nothing' ? undefined : clients.followKey(caller, end);
  try {
    await work(gone.signal);
  } finally {
    forgetKey?.();
  }
};

/** Links use their own paths. */
const isTraffic = (request: IncomingMessage): boolean => {
  const linked = linkedAddressOf(request);
  return linked === undefined ? isForSandbox(request) : linked !== 'control';
};

const isHere = ({ clusterId }: Admitted): boolean => clusterId === undefined;

type PortTerms = Omit<ExchangeTerms, 'agent'>;

const through: typeof throughPort = async (deps, sandbox, { request, exchanged }) => {
  const { sandboxId: id, clusterId, caller, port, by } = sandbox;
  deps.services.permit(request, {
    ...{ sandboxId: restIdOf({ id, clusterId }), caller, port },
    isGuest: by === 'nothing',
    requestId: requestIdFrom(request.headers['x-request-id']),
  });
  if (isHere(sandbox)) return await throughPort(deps, sandbox, { request, exchanged });
  keepTokens(request);
  const { others } = deps.terms;
  if (!others) throw sandboxNotFound();
  await others.toCluster(sandbox, request, exchanged);
};

const throughPort = async (
  { operations, clients, clock, audit }: TrafficDeps,
  { sandboxId, caller, port }: Admitted,
  {
    request,
    exchanged,
  }: {
    readonly request: IncomingMessage;
    readonly exchanged: (terms: PortTerms) => Promise<void>;
  },
): Promise<void> => {
  const coding = request.headers['transfer-encoding'];
  if (coding !== undefined && coding.toLowerCase() !== 'chunked')
    throw new Refusal('UNSUPPORTED_MEDIA_TYPE', 'the body must not be encoded (Transfer-Encoding)');
  const endpoint = await operations.openPort(caller, sandboxId, port);
  const endpointName = String(port);
  audit?.count({
    kind: 'open',
    caller,
    operation: 'openEndpoint',
    params: { sandboxId, endpointName },
  });
  keepTokens(request);
  try {
    if (port === INTERPRETER_PORT) tellVariables(request, endpoint.env() ?? {});
    await exchanged({
      endpoint,
      target: { sandboxId, endpointName, prefix: '', path: request.url ?? '/' },
      requestId: requestIdFrom(request.headers['x-request-id']),
      clock,
      clients,
    });
  } finally {
    endpoint.close();
  }
};

/** The interpreter's server started before the claim. */
const VARIABLES = 'Sandpool-Claim-Env';
/** In bytes; the interpreter's server accepts 64 KiB. */
const MOST_OF_LINE = 32 << 10;

const OURS: ReadonlySet<string> = new Set([
  ...TOKEN_HEADERS,
  VARIABLES.toLowerCase(),
  IDENTITY_HEADER,
  CLAIM_KEY_HEADER,
  CLAIM_TERMS_HEADER,
]);

/** The sandbox must not see these. */
const keepTokens = (request: IncomingMessage): void => {
  const { rawHeaders } = request;
  request.rawHeaders = rawHeaders.filter(
    (_, at) => !OURS.has((rawHeaders[at - (at % 2)] ?? '').toLowerCase().replaceAll('_', '-')),
  );
};

const tellVariables = (request: IncomingMessage, env: TextPairs): void => {
  if (Object.keys(env).length === 0) return;
  const text = Buffer.from(JSON.stringify(env)).toString('base64');
  for (let at = 0; at < text.length; at += MOST_OF_LINE)
    request.rawHeaders.push(VARIABLES, text.slice(at, at + MOST_OF_LINE));
};

interface Seen {
  readonly requestId: string;
  readonly method: string;
  readonly startedAt: number;
}

const seenOf = ({ clock }: TrafficDeps, { method = '', headers }: IncomingMessage): Seen => ({
  requestId: requestIdFrom(headers['x-request-id']),
  method: method.slice(0, 32),
  startedAt: clock.now(),
});

const note = (
  { log, clock, metrics }: TrafficDeps,
  { requestId, method, startedAt }: Seen,
  { status, errorCode }: { readonly status: number; readonly errorCode?: string },
): void => {
  metrics.count('sandpool_http_requests_total', {
    method: 'any',
    route: 'sandbox traffic',
    status: `${Math.floor(status / 100)}xx`,
  });
  const durationMs = clock.now() - startedAt;
  const fields = { requestId, method, status, durationMs };
  if (errorCode === undefined) log.debug(fields, 'sandbox-traffic');
  else log.info({ ...fields, errorCode }, 'sandbox-traffic-refused');
};

const refuse = (
  deps: TrafficDeps,
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
  const { errorCode } = answer.body;
  if (errorCode === 'INTERNAL')
    deps.log.error({ requestId: seen.requestId, error }, 'sandbox-traffic-failed');
  const shown = asGone(errorCode, shownError(answer));
  note(deps, seen, { status: shown.status, errorCode });
  // The code interpreter's SDKs show only the reason phrase.
  if (portNamedBy(request) === INTERPRETER_PORT)
    response.statusMessage = shown.body.message.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 200);
  giveError(request, response, { answer: shown, requestId: seen.requestId });
};

const GONE: ReadonlySet<string> = new Set([
  'SANDBOX_NOT_FOUND',
  'SANDBOX_NOT_RUNNING',
  'CLUSTER_NOT_FOUND',
]);

/** SDKs only read 502 as "the sandbox is gone". */
const asGone = (errorCode: string, shown: ShownError): ShownError =>
  GONE.has(errorCode)
    ? { ...shown, status: 502, body: { code: 502, message: 'the sandbox was not found' } }
    : shown;
