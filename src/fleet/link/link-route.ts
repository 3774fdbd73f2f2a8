import type { ClientHttp2Session } from 'node:http2';
import type { Clock } from '../../contracts/clock.ts';
import type { ClusterRoute } from '../../contracts/fleet/cluster-links.ts';
import { clusterUnavailable } from '../../model/fleet/cluster-refusals.ts';
import type { Heartbeat } from './heartbeat.ts';
import { identitySigner } from './identity.ts';
import type { LinkSecret } from './link-secret.ts';
import { TunnelSocket } from './tunnel-socket.ts';

interface RouteTerms extends Pick<ClusterRoute, 'clusterId' | 'linkId'> {
  /** Signs identities that this worker takes. */
  readonly signer: Pick<LinkSecret, 'sign'>;
  readonly clock: Clock;
  /** Undefined until it has begun. */
  readonly heartbeat: () => Heartbeat | undefined;
}

/** Returns the way to a worker's server over the HTTP/2 of a link. */
export const routeOver = (
  session: ClientHttp2Session,
  { clusterId, linkId, signer, clock, heartbeat }: RouteTerms,
): ClusterRoute => ({
  clusterId,
  linkId,
  latencyMs: () => heartbeat()?.latencyMs ?? 0,
  dial: () => {
    if (session.closed || session.destroyed)
      throw clusterUnavailable(clusterId, 'is not connected; try again');
    const stream = session.request({ ':method': 'CONNECT', ':authority': clusterId });
    const connection = new TunnelSocket(stream, 'client');
    stream.once('response', (headers) => {
      if (headers[':status'] !== 200)
        connection.destroy(new Error('the worker takes no more connections'));
    });
    return connection;
  },
  identify: identitySigner(signer, { clusterId, linkId, clock }),
  probe: (silent) => heartbeat()?.probe(silent) ?? (() => undefined),
});
