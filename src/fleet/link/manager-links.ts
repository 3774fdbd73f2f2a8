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

export const LINK_PATH = '/fleet/link';
const LOOK_MS = 1_000;
const SETTLED_MS = 5_000;
const BEGIN_MS = 10_000;

interface Came {
  readonly address: string;
  readonly channel: string;
}

export interface ManagerLinksDeps extends LinksOfReplica {
  readonly coordination: ClusterStarts & Pick<Leases, 'replicas'>;
  readonly addressOf: (request: IncomingMessage) => string;
}

/**
 * Each worker replica has one link: a new one replaces the old, which may be half open. Requests go
 * over a cluster's links in turn.
 */
export class ManagerLinks implements FleetLinks {
  readonly #deps: ManagerLinksDeps;
  readonly #pending = new PendingLinks();
  readonly refused = new RefusedLinks();
  /** By cluster, then by replica. The first link serves the next request. */
  readonly #open = new Map<string, Map<string, ManagerLink>>();
  readonly #lastHeard = new Map<string, number>();
  readonly #starts: LinkedStarts;
  readonly #unreported = new WeakSet<ManagerLink>();
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

  /** Never throws. */
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
      this.#deps.log.warn({ error }, 'link-refused');
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
      links?.delete(replica); // to the end: the next call takes another link
      links?.set(replica, link);
      return route;
    }
    return undefined;
  }

  async keysSettled(): Promise<void> {
    const links = [...this.#open.values()].flatMap((each) => [...each.values()]);
    await Promise.all(links.map((link) => link.keysSettled()));
  }

  /** Resolves after 5 s at the latest. */
  async templatesSettled(): Promise<void> {
    const links = [...this.#open.values()].flatMap((each) => [...each.values()]);
    await within(
      this.#deps.clock,
      SETTLED_MS,
      Promise.all(links.map((link) => link.templatesSettled())),
    );
  }

  /** Undefined if the cluster does not answer in 2 s. */
  async report(clusterId: string, globalId: string): Promise<CopyReport | undefined> {
    const link = this.#linksOf(clusterId).find(({ route }) => route !== undefined);
    return await link?.report(globalId).catch((error: unknown) => {
      if (!link.isOver && !this.#unreported.has(link))
        this.#deps.log.warn({ clusterId, error }, 'global-template-not-reported');
      this.#unreported.add(link);
      return undefined;
    });
  }

  async dismiss(clusterId: string): Promise<void> {
    await Promise.all(this.#linksOf(clusterId).map((link) => link.dismiss()));
    this.#lastHeard.delete(clusterId);
  }

  leave(): void {
    this.#leaving = true;
    this.#pending.cutAll('the manager stops');
  }

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

  /** Cuts links of the cluster's former key. */
  #cutOthers(clusterId: string, publicKey: string): void {
    for (const link of this.#linksOf(clusterId))
      if (link.worker?.publicKey !== publicKey) link.cut('the cluster joined again');
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
      if (!worker) return link.cut('the worker has another link');
      if (link.isOver) return;
      const { publicKey } = this.#deps.registry.find(worker.clusterId) ?? {};
      if (publicKey === undefined) return await link.dismiss(); // removed while the link opened
      this.#enter(link, worker);
      this.#cutOthers(worker.clusterId, publicKey);
    } catch (error) {
      this.#pending.delete(link);
      this.#refuse(error);
      link.cut('refused');
    }
  }

  /** `LinkedStarts` reports a cluster that runs twice. */
  #refuse(error: unknown): void {
    if (this.refused.note(error) !== 'runs-twice') this.#deps.log.warn({ error }, 'link-refused');
  }

  #enter(link: ManagerLink, { clusterId, replica }: LinkedWorker): void {
    const links = this.#open.get(clusterId) ?? new Map<string, ManagerLink>();
    links.get(replica)?.cut('another link of the replica replaced it');
    if (links.size >= MOST_REPLICAS) return link.cut('the cluster has the maximum number of links');
    links.set(replica, link);
    this.#open.set(clusterId, links);
    link.tellReplicas(); // their number may have changed since the welcome
    this.#deps.log.info({ clusterId, replica }, 'cluster-linked');
  }

  #forget(link: ManagerLink, { clusterId, replica }: LinkedWorker, why: string): void {
    const links = this.#open.get(clusterId);
    if (links?.get(replica) !== link) return;
    links.delete(replica);
    if (links.size === 0) this.#open.delete(clusterId);
    this.#deps.log.warn({ clusterId, replica, why }, 'link-cut');
  }
}

interface PendingLink {
  /** May be repeated. */
  readonly cut: (why: string) => void;
}

/** Total, and per address. */
const MOST_PENDING = 32;
const MOST_OF_ADDRESS = 8;

/**
 * Anybody may open a link, so beyond a limit the oldest goes: stalled links cannot lock out a
 * worker that authenticates at once. An authenticated link counts only for its own cluster.
 */
export class PendingLinks {
  /** Oldest first. */
  readonly #links = new Map<PendingLink, string>();
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

  /** No effect if the link was cut. */
  proved(link: PendingLink, clusterId: string): void {
    if (!this.#links.delete(link)) return;
    this.#proved.set(link, clusterId);
    const ofCluster = [...this.#proved].filter(([, of]) => of === clusterId);
    const oldest = ofCluster[0]?.[0];
    if (!oldest || ofCluster.length <= MOST_REPLICAS) return;
    this.#proved.delete(oldest);
    oldest.cut('too many links of the cluster are opening');
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
      link.cut('too many links are not authenticated yet');
      return;
    }
  }
}

/** Nothing reads the socket, so it would stay half open forever. */
const endWith = (socket: Duplex, status: string): void => {
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\n\r\n`, () => socket.destroy());
};
