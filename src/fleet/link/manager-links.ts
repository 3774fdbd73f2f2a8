import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { within } from '../../contracts/clock.ts';
import type {
  ClusterRoute,
  FleetLinks,
  InvitedCluster,
  LinkedCluster,
} from '../../contracts/fleet/cluster-links.ts';
import type { ClusterStarts } from '../../contracts/coordination/cluster-starts.ts';
import type { Leases } from '../../contracts/coordination/leases.ts';
import type { CopyReport } from '../../contracts/fleet/global-templates.ts';
import { channelName, linkChannel } from './link-channel.ts';
import { acceptLink, asksLink } from './link-socket.ts';
import { MOST_REPLICAS } from './link-words.ts';
import {
  type LinksOfReplica,
  RefusedLinks,
  type LinkedWorker,
  ManagerLink,
} from './manager-link.ts';
import { LinkedStarts } from './linked-starts.ts';

/** Where workers come to: a WebSocket, which HTTP/2 runs in. */
export const LINK_PATH = '/fleet/link';
/** How often it is looked whether the manager's replicas are the same as before. */
const LOOK_MS = 1_000;
const SETTLED_MS = 5_000;
/** For who dialled to begin, once it was agreed to. */
const BEGIN_MS = 10_000;

/** Says how a link came: from which address, and over which TLS connection. */
interface Came {
  readonly address: string;
  readonly channel: string;
}

export interface ManagerLinksDeps extends LinksOfReplica {
  /** Replicas of the manager share it. */
  readonly coordination: ClusterStarts & Pick<Leases, 'replicas'>;
  /** The address of who asks, behind trusted proxies too. */
  readonly addressOf: (request: IncomingMessage) => string;
}

/**
 * The links that worker clusters opened to this replica of the manager. One stands of each replica
 * of a cluster: a new one takes the place of the one before it, which may be half open. What is
 * asked of a cluster goes over its links in turn.
 */
export class ManagerLinks implements FleetLinks {
  readonly #deps: ManagerLinksDeps;
  readonly #pending = new PendingLinks();
  readonly refused = new RefusedLinks();
  /** By cluster, by its replica; the first one is the next to be asked. */
  readonly #open = new Map<string, Map<string, ManagerLink>>();
  readonly #lastHeard = new Map<string, number>();
  readonly #starts: LinkedStarts;
  /** Those of which the log says that they do not say how a global template stands. */
  readonly #unreported = new WeakSet<ManagerLink>();
  /** The manager's replicas of which workers were told last. */
  #told = '';
  #callOff: () => void = () => {};
  #leaving = false;

  constructor(deps: ManagerLinksDeps) {
    this.#deps = deps;
    this.#starts = new LinkedStarts({ ...deps, held: deps.coordination });
  }

  start(): void {
    this.#starts.start();
    this.#deps.registry.follow((clusterId, publicKey) => {
      if (publicKey === undefined) void this.dismiss(clusterId);
      else this.#cutOthers(clusterId, publicKey);
    });
    this.#look();
  }

  takes({ url = '' }: Pick<IncomingMessage, 'url'>): boolean {
    return url === LINK_PATH;
  }

  /** For the server's `upgrade` event. Never throws. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => socket.destroy());
    if (this.#leaving) {
      endWith(socket, '503 Service Unavailable\r\nRetry-After: 1');
      return;
    }
    if (!(socket instanceof Socket) || !asksLink(request)) {
      endWith(socket, '400 Bad Request');
      return;
    }
    const came = { address: this.#deps.addressOf(request), channel: channelName(socket) };
    void this.#begin(request, { socket, head, came }).catch((error: unknown) => {
      this.#deps.log.warn({ error }, 'a link was refused');
      socket.destroy();
    });
  }

  get replica(): string {
    return this.#deps.replica;
  }

  list(): readonly LinkedCluster[] {
    return this.#deps.registry.joined().map(({ clusterId }) => {
      const links = this.#linksOf(clusterId).flatMap(({ view }) => view ?? []);
      return {
        clusterId,
        isConnected: links.some(({ status }) => status === 'Open'),
        lastHeartbeat: this.#lastHeard.get(clusterId),
        links,
        copyRefusedAt: this.#starts.rivalAt(clusterId),
      };
    });
  }

  invited(): readonly InvitedCluster[] {
    return this.#deps.registry.invited();
  }

  find(clusterId: string): ClusterRoute | undefined {
    const links = this.#open.get(clusterId);
    for (const [replica, link] of links ?? []) {
      const { route } = link;
      if (!route) continue;
      links?.delete(replica); // to the end: the next call goes over another one
      links?.set(replica, link);
      return route;
    }
    return undefined;
  }

  /** Resolves once all that are linked know what changed of promoted keys before this call. */
  async keysSettled(): Promise<void> {
    const links = [...this.#open.values()].flatMap((each) => [...each.values()]);
    await Promise.all(links.map((link) => link.keysSettled()));
  }

  /** Resolves once all were told what changed of global templates before this call, or in 5 s. */
  async templatesSettled(): Promise<void> {
    const links = [...this.#open.values()].flatMap((each) => [...each.values()]);
    await within(
      this.#deps.clock,
      SETTLED_MS,
      Promise.all(links.map((link) => link.templatesSettled())),
    );
  }

  /** How a cluster stands to a global template; undefined where it does not answer in 2 s. */
  async report(clusterId: string, globalId: string): Promise<CopyReport | undefined> {
    const link = this.#linksOf(clusterId).find(({ route }) => route !== undefined);
    return await link?.report(globalId).catch((error: unknown) => {
      if (!link.isOver && !this.#unreported.has(link))
        this.#deps.log.warn(
          { clusterId, error },
          'a cluster does not report the state of a template',
        );
      this.#unreported.add(link);
      return undefined;
    });
  }

  /** Ends the links of a cluster that was removed. */
  async dismiss(clusterId: string): Promise<void> {
    await Promise.all(this.#linksOf(clusterId).map((link) => link.dismiss()));
    this.#lastHeard.delete(clusterId);
  }

  /** Takes no more links; those that stand are as before. */
  leave(): void {
    this.#leaving = true;
    this.#pending.cutAll('the manager stops');
  }

  /** Cuts every link. */
  stop(): void {
    this.leave();
    this.#callOff();
    this.#starts.stop();
    for (const clusterId of [...this.#open.keys()])
      for (const link of this.#linksOf(clusterId)) link.cut('the manager stops');
  }

  #linksOf(clusterId: string): readonly ManagerLink[] {
    return [...(this.#open.get(clusterId)?.values() ?? [])];
  }

  /** Cuts links that were opened with a key that the cluster has no more. */
  #cutOthers(clusterId: string, publicKey: string): void {
    for (const link of this.#linksOf(clusterId))
      if (link.worker?.publicKey !== publicKey) link.cut('the cluster joined anew');
  }

  #look(): void {
    const { clock, coordination } = this.#deps;
    this.#callOff = clock.at(clock.now() + LOOK_MS, () => this.#look());
    void this.#deps.registry.forgetEnded();
    const names = coordination.replicas().toSorted().join();
    if (names === this.#told) return;
    this.#told = names;
    for (const links of this.#open.values()) for (const link of links.values()) link.tellReplicas();
  }

  /** Takes a link once it begins; until then it counts among those that have proved nothing. */
  async #begin(
    request: IncomingMessage,
    { socket, head, came }: { readonly socket: Socket; readonly head: Buffer; readonly came: Came },
  ): Promise<void> {
    const { clock } = this.#deps;
    const pending = { cut: () => void socket.destroy() };
    this.#pending.add(pending, came.address);
    const callOff = clock.at(clock.now() + BEGIN_MS, pending.cut);
    try {
      socket.setTimeout(0);
      socket.setNoDelay(true);
      await acceptLink(request, socket, head);
    } catch (error) {
      this.#refuse(error);
      return pending.cut();
    } finally {
      callOff();
      this.#pending.delete(pending);
    }
    await this.#take(socket, came);
  }

  async #take(socket: Socket, { address, channel }: Came): Promise<void> {
    const { clock } = this.#deps;
    const link: ManagerLink = new ManagerLink(linkChannel(socket), {
      ...this.#deps,
      channel,
      replicas: () => Math.max(1, this.#deps.coordination.replicas().length),
      proved: async (clusterId, start) => {
        this.#pending.proved(link, clusterId);
        return start === undefined || (await this.#starts.take(link, { clusterId, start }));
      },
      heard: (clusterId) => this.#lastHeard.set(clusterId, clock.now()),
      over: (worker, why) => {
        this.#pending.delete(link);
        this.#starts.end(link);
        if (worker) this.#forget(link, worker, why);
      },
    });
    this.#pending.add(link, address);
    try {
      const worker = await link.open();
      this.#pending.delete(link);
      if (!worker) return link.cut('the worker has another one');
      if (link.isOver) return;
      const { publicKey } = this.#deps.registry.find(worker.clusterId) ?? {};
      if (publicKey === undefined) return await link.dismiss(); // removed meanwhile
      this.#enter(link, worker);
      this.#cutOthers(worker.clusterId, publicKey);
    } catch (error) {
      this.#pending.delete(link);
      this.#refuse(error);
      link.cut('refused');
    }
  }

  /** Another start of the cluster's daemon is linked: that is told of by itself. */
  #refuse(error: unknown): void {
    if (this.refused.note(error) !== 'runs-twice')
      this.#deps.log.warn({ error }, 'a link was refused');
  }

  #enter(link: ManagerLink, { clusterId, replica }: LinkedWorker): void {
    const links = this.#open.get(clusterId) ?? new Map<string, ManagerLink>();
    links.get(replica)?.cut('another link of the replica took its place');
    if (links.size >= MOST_REPLICAS) return link.cut('the cluster has as many links as it may');
    links.set(replica, link);
    this.#open.set(clusterId, links);
    link.tellReplicas(); // they may be others since it was welcomed
    this.#deps.log.info({ clusterId, replica }, 'a cluster is linked');
  }

  #forget(link: ManagerLink, { clusterId, replica }: LinkedWorker, why: string): void {
    const links = this.#open.get(clusterId);
    if (links?.get(replica) !== link) return;
    links.delete(replica);
    if (links.size === 0) this.#open.delete(clusterId);
    this.#deps.log.warn({ clusterId, replica, why }, 'the link to a cluster is cut');
  }
}

/** A link that is not open yet, or a connection that is yet to be one. */
interface PendingLink {
  /** May be repeated. */
  readonly cut: (why: string) => void;
}

/** Links that have not proved yet whose they are; and those of one address. */
const MOST_PENDING = 32;
const MOST_OF_ADDRESS = 8;

/**
 * Holds the links that have yet to prove whose they are. Anybody may open some: where there are too
 * many, of all or of one address, the oldest one goes, so that who proves it at once is not kept
 * out by who never will. One that has proved it makes room for those of its own cluster alone.
 */
export class PendingLinks {
  /** By address, in the order in which they came. */
  readonly #links = new Map<PendingLink, string>();
  /** Those that have proved whose they are, and are not open yet, by cluster. */
  readonly #proved = new Map<PendingLink, string>();

  add(link: PendingLink, address: string): void {
    this.#links.set(link, address);
    const count = (of: string): number =>
      [...this.#links.values()].filter((each) => each === of).length;
    if (count(address) > MOST_OF_ADDRESS) this.#cutOldest((each) => each === address);
    if (this.#links.size <= MOST_PENDING) return;
    const most = Math.max(...[...this.#links.values()].map(count));
    this.#cutOldest((each) => count(each) === most);
  }

  /** Notes whose a link is; of no effect where it was cut. */
  proved(link: PendingLink, clusterId: string): void {
    if (!this.#links.delete(link)) return;
    this.#proved.set(link, clusterId);
    const ofCluster = [...this.#proved].filter(([, of]) => of === clusterId);
    const oldest = ofCluster[0]?.[0];
    if (!oldest || ofCluster.length <= MOST_REPLICAS) return;
    this.#proved.delete(oldest);
    oldest.cut('too many links of the cluster have yet to open');
  }

  delete(link: PendingLink): void {
    this.#links.delete(link);
    this.#proved.delete(link);
  }

  cutAll(why: string): void {
    for (const link of [...this.#links.keys(), ...this.#proved.keys()]) link.cut(why);
  }

  #cutOldest(isOne: (address: string) => boolean): void {
    for (const [link, address] of this.#links) {
      if (!isOne(address)) continue;
      this.#links.delete(link);
      link.cut('too many links have yet to prove whose they are');
      return;
    }
  }
}

/** Nothing reads such a socket any more, so that it would stay half open for ever. */
const endWith = (socket: Duplex, status: string): void => {
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\n\r\n`, () => socket.destroy());
};
