import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer, type WebSocket } from 'ws';
import type { Clock } from '../contracts/clock.ts';
import type { ClusterRoute, FleetLinks, LinkedCluster } from '../contracts/fleet/cluster-links.ts';
import type { PromotedKeySource } from '../contracts/fleet/promoted-keys.ts';
import type { Log } from '../contracts/log.ts';
import type { ClusterRegistry } from './cluster-registry.ts';
import type { FleetKey } from './fleet-keys.ts';
import { MOST_MESSAGE_BYTES } from './link-channel.ts';
import { ManagerLink } from './manager-link.ts';

/** Where workers come to: an upgrade to WebSocket. */
export const LINK_PATH = '/fleet/link';
/** Links that have not proved yet whose they are. */
const MOST_PENDING = 32;

export interface ManagerLinksDeps {
  readonly registry: ClusterRegistry;
  readonly key: FleetKey;
  readonly clock: Clock;
  readonly log: Log;
  readonly keys: PromotedKeySource;
}

/**
 * The links that worker clusters opened to this manager. One stands of each cluster: a new one
 * takes the place of the one before it, which may be half open.
 */
export class ManagerLinks implements FleetLinks {
  readonly #deps: ManagerLinksDeps;
  readonly #server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MOST_MESSAGE_BYTES,
  });
  readonly #pending = new Set<ManagerLink>();
  readonly #open = new Map<string, ManagerLink>();
  readonly #lastHeard = new Map<string, number>();
  #stopping = false;

  constructor(deps: ManagerLinksDeps) {
    this.#deps = deps;
    deps.registry.onRemoved((clusterId) => void this.dismiss(clusterId));
  }

  takes({ url = '' }: Pick<IncomingMessage, 'url'>): boolean {
    return url === LINK_PATH;
  }

  /** For the server's `upgrade` event. Never throws. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => socket.destroy());
    if (this.#stopping || this.#pending.size >= MOST_PENDING) {
      socket.end('HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n\r\n');
      return;
    }
    this.#server.handleUpgrade(request, socket, head, (ws) => {
      void this.#take(ws);
    });
  }

  list(): readonly LinkedCluster[] {
    return this.#deps.registry.list().map(({ clusterId }) => ({
      clusterId,
      isConnected: this.#open.has(clusterId),
      lastHeartbeat: this.#lastHeard.get(clusterId),
    }));
  }

  find(clusterId: string): ClusterRoute | undefined {
    return this.#open.get(clusterId)?.route;
  }

  /** Resolves once all that are linked know what changed of promoted keys before this call. */
  async keysSettled(): Promise<void> {
    await Promise.all([...this.#open.values()].map((link) => link.keysSettled()));
  }

  /** Ends the link of a cluster that was removed. */
  async dismiss(clusterId: string): Promise<void> {
    await this.#open.get(clusterId)?.dismiss();
    this.#lastHeard.delete(clusterId);
  }

  /** Cuts every link. */
  stop(): void {
    this.#stopping = true;
    for (const link of [...this.#pending, ...this.#open.values()]) link.cut('the manager stops');
  }

  async #take(socket: WebSocket): Promise<void> {
    const { log, clock, registry } = this.#deps;
    const link: ManagerLink = new ManagerLink(socket, {
      ...this.#deps,
      heard: (clusterId) => this.#lastHeard.set(clusterId, clock.now()),
      over: (clusterId, why) => {
        this.#pending.delete(link);
        if (clusterId === undefined || this.#open.get(clusterId) !== link) return;
        this.#open.delete(clusterId);
        log.warn({ clusterId, why }, 'the link to a cluster is cut');
      },
    });
    this.#pending.add(link);
    try {
      const clusterId = await link.open();
      this.#pending.delete(link);
      if (!registry.has(clusterId)) return await link.dismiss(); // removed meanwhile
      this.#open.get(clusterId)?.cut('another link of the cluster took its place');
      this.#open.set(clusterId, link);
      log.info({ clusterId }, 'a cluster is linked');
    } catch (error) {
      this.#pending.delete(link);
      log.warn({ error }, 'a link was refused');
      link.cut('refused');
    }
  }
}
