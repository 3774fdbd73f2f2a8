import { ServerResponse, type IncomingMessage } from 'node:http';
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
import { BY_TOKEN, passUpgrade, permitWay, type PassUpgradeDeps } from './pass-upgrade.ts';
import { passTaken } from './passed-answer.ts';
import { endpointHeaders, routeHeaders } from './passed-headers.ts';

export interface FleetGatewayDeps extends PassUpgradeDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** Answers for the manager's own cluster. */
  readonly gateway: Gateway;
  readonly upgrade: Gateway['upgrade'];
}

/**
 * The way to endpoints, terminals and processes of sandboxes on any cluster of a manager: what is
 * on another one is passed on as it comes, and its bytes both ways are not looked at.
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
          deps.log.error({ requestId, error }, 'an upgrade could not be forwarded');
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
      log.error({ requestId, error }, 'a request to an endpoint failed');
    giveError(request, response, { answer: refused, requestId });
  } finally {
    forgetKey();
  }
};
