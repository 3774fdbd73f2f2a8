import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Clock } from '../../contracts/clock.ts';
import type { FleetDeps } from '../routing/fleet-router.ts';
import type { ExchangeTerms } from '../../http/gateway/exchange.ts';
import type { Clients } from '../../http/limits/clients.ts';
import { requestIdFrom } from '../../http/limits/request-head.ts';
import { clusterUnavailable } from '../../model/fleet/cluster-refusals.ts';
import { IDENTITY_HEADER } from '../../model/fleet/identity-header.ts';
import { Refusal, sandboxNotFound } from '../../model/refusals.ts';
import { tenantKey } from '../../model/tenant.ts';
import { linkedPath } from '../../http/e2b/traffic/over-links.ts';
import { isOpen, type Admitted } from '../../http/e2b/traffic/admission.ts';
import { unsigned } from '../../http/e2b/traffic/signed-link.ts';

export interface ToClusterDeps {
  readonly fleet: Pick<FleetDeps, 'fleet' | 'passing'>;
  readonly clients: Clients;
  readonly clock: Clock;
}

type Terms = Omit<ExchangeTerms, 'agent'>;

interface Passage {
  readonly request: IncomingMessage;
  readonly exchanged: (terms: Terms) => Promise<void>;
}

const brokenBy = new WeakSet<object>();

/**
 * Forwards a request with the caller's signed identity instead of its token. Refuses with
 * CLUSTER_UNAVAILABLE if no answer comes, since the sandbox may still exist.
 */
export const toCluster = async (
  { fleet, clients, clock }: ToClusterDeps,
  { clusterId = '', sandboxId, port, by, caller }: Admitted,
  { request, exchanged }: Passage,
): Promise<void> => {
  if (by === 'nothing') throw sandboxNotFound();
  const { passed } = fleet.passing;
  const way = fleet.passing.wayTo(fleet.fleet, clusterId);
  const release = fleet.passing.hold(way, tenantKey(caller));
  const { method = 'GET', headers, url = '/' } = request;
  const target = linkedPath({ sandboxId, port, by }, by === 'signature' ? unsigned(url) : url);
  const key = headers['idempotency-key'];
  const idempotencyKey = typeof key === 'string' ? key : undefined;
  if (by === 'signature') dropReferer(request.rawHeaders); // it may contain another signed URL
  request.rawHeaders.push(
    IDENTITY_HEADER,
    way.identify(caller, { method, target, idempotencyKey }),
  );
  let asked: ClientRequest | undefined;
  let isAnswered = false;
  const noAnswer = () =>
    clusterUnavailable(clusterId, 'did not answer, and the outcome is unknown');
  const callOff = fleet.passing.lookAt(way, () => asked?.destroy(noAnswer()));
  const endpoint: Terms['endpoint'] = {
    // connections are pooled by link, for any sandbox
    ...{ sandboxId: way.linkId, port: 0, scheme: 'http', env: () => undefined },
    dial: async () => way.dial().on('error', (error) => void brokenBy.add(error)),
    touch: () => undefined,
    close: () => undefined,
  };
  try {
    await exchanged({
      endpoint,
      target: { sandboxId, endpointName: String(port), prefix: '', path: target },
      requestId: requestIdFrom(headers['x-request-id']),
      clock,
      clients,
      follower: {
        asked: (asking) => {
          asked = asking;
        },
        answered: ({ statusCode = 0 }) => {
          callOff(); // a stream lasts as long as its link
          if (isRedirect(statusCode) && !isOpen(port))
            throw clusterUnavailable(clusterId, 'answered with a redirect, which is not followed');
          isAnswered = true;
          passed.note(clusterId, 'answered');
        },
      },
    });
  } catch (error) {
    const told = isOfLink(error) ? noAnswer() : error;
    if (!isAnswered) passed.noteFailure(clusterId, told);
    throw told;
  } finally {
    callOff();
    release();
  }
};

const dropReferer = (rawHeaders: string[]): void => {
  for (let at = rawHeaders.length - 2; at >= 0; at -= 2)
    if (rawHeaders[at]?.toLowerCase() === 'referer') rawHeaders.splice(at, 2);
};

const isRedirect = (status: number): boolean => status >= 300 && status < 400 && status !== 304;

const isOfLink = (error: unknown): boolean =>
  error instanceof Refusal
    ? BROKEN.has(error.code)
    : typeof error === 'object' && error !== null && brokenBy.has(error);

const BROKEN: ReadonlySet<string> = new Set(['ENDPOINT_UNREACHABLE', 'ENDPOINT_TIMEOUT']);
