import { within, type Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import { MOST_REPLICAS } from './link-words.ts';
import {
  type ManagerReplica,
  WorkerLink,
  type LinksOfWorker,
  type LinkEnd,
} from './worker-link.ts';
import type { Socket } from 'node:net';
import { channelName, linkChannel } from './link-channel.ts';
import { dialLink } from './link-socket.ts';
import { fingerprintOf } from './fleet-keys.ts';
import { LINK_PATH } from './manager-links.ts';

export interface WorkerLinksDeps extends LinksOfWorker {
  readonly log: Log;
  /** Origins, `ws://` or `wss://`. */
  readonly managers: readonly string[];
}

export interface ManagerStanding {
  readonly address: string;
  readonly links: number;
  readonly failed: number;
}

/**
 * Keeps a link open to each replica of each manager, and reopens a cut one within about a second.
 * An address may lead to any replica, so it dials until every one is linked.
 */
export class WorkerLinks {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #diallers: readonly Dialler[];
  /** By the manager's key, then by replica. */
  readonly #open = new Map<string, Map<string, WorkerLink>>();
  readonly #wanted = new Map<string, number>();

  constructor(deps: WorkerLinksDeps) {
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.#diallers = deps.managers.map((address) => new Dialler(address, deps, this));
  }

  start(): void {
    this.#dial();
  }

  /** Requests in progress go on. */
  leave(): void {
    for (const dialler of this.#diallers) dialler.stop();
    for (const links of this.#open.values()) for (const link of links.values()) link.leave();
  }

  /** Resolves after `withinMs` at the latest. */
  async drained(withinMs: number): Promise<void> {
    const links = [...this.#open.values()].flatMap((each) => [...each.values()]);
    await within(this.#clock, withinMs, Promise.all(links.map((link) => link.idle())));
  }

  get size(): number {
    return [...this.#open.values()].reduce((sum, links) => sum + links.size, 0);
  }

  /** Two addresses may lead to the same manager. */
  get standings(): readonly ManagerStanding[] {
    return this.#diallers.map(({ address, managerKey = '', failed }) => ({
      address,
      links: this.#open.get(managerKey)?.size ?? 0,
      failed,
    }));
  }

  stop(): void {
    for (const dialler of this.#diallers) dialler.stop();
    for (const links of [...this.#open.values()])
      for (const link of [...links.values()]) link.end('the daemon stops', 'cut');
  }

  holds({ managerKey, replica }: ManagerReplica): boolean {
    return this.#open.get(managerKey)?.has(replica) === true;
  }

  missing(managerKey: string): number {
    const wanted = Math.min(this.#wanted.get(managerKey) ?? 1, MOST_REPLICAS);
    return wanted - (this.#open.get(managerKey)?.size ?? 0);
  }

  opened(manager: string, link: WorkerLink, to: ManagerReplica): void {
    const links = this.#open.get(to.managerKey) ?? new Map<string, WorkerLink>();
    links.get(to.replica)?.end('another link replaced it', 'cut');
    links.set(to.replica, link);
    this.#open.set(to.managerKey, links);
    this.#log.info({ manager, replica: to.replica }, 'manager-linked');
  }

  ended(link: WorkerLink, { managerKey, replica }: ManagerReplica): void {
    const links = this.#open.get(managerKey);
    if (links?.get(replica) !== link) return;
    links.delete(replica);
    if (links.size === 0) {
      this.#open.delete(managerKey);
      this.#wanted.delete(managerKey);
    }
    this.#dial();
  }

  told({ managerKey }: ManagerReplica, replicas: number): void {
    this.#wanted.set(managerKey, replicas);
    for (const dialler of this.#diallers) dialler.hurry(managerKey);
    this.#dial();
  }

  #dial(): void {
    for (const dialler of this.#diallers) dialler.consider();
  }
}

const DIAL_MS = 5_000;
/** Ends when the link begins, even if bytes trickle in. */
const MOST_DIAL_MS = 10_000;
/** Doubled for each further wait. */
const FIRST_WAIT_MS = 100;
const MOST_WAIT_MS = 1_000;
/** A faster retry after a refusal does not help. */
const LONG_WAIT_MS = 5_000;
/** Consecutive dials, per missing replica, to replicas that are linked. */
const MOST_HELD = 10;

class Dialler {
  readonly address: string;
  readonly #deps: WorkerLinksDeps;
  readonly #links: WorkerLinks;
  #managerKey: string | undefined;
  #end: (() => void) | undefined;
  #waitMs = FIRST_WAIT_MS;
  #held = 0;
  #wait: { readonly until: number; readonly callOff: () => void } | undefined;
  #callOffDial = (): void => undefined;
  #stopped = false;
  #told: string | undefined;
  #failed = 0;

  constructor(address: string, deps: WorkerLinksDeps, links: WorkerLinks) {
    this.address = address;
    this.#deps = deps;
    this.#links = links;
  }

  get managerKey(): string | undefined {
    return this.#managerKey;
  }

  /** Ignores dials to an already linked replica. */
  get failed(): number {
    return this.#failed;
  }

  consider(): void {
    if (this.#stopped || this.#end || this.#wait) return;
    if (this.#managerKey !== undefined && this.#links.missing(this.#managerKey) <= 0) return;
    const { clock } = this.#deps;
    this.#callOffDial = clock.at(clock.now() + MOST_DIAL_MS, () => this.#end?.());
    this.#dial();
  }

  /** Called when the manager's replicas have changed. */
  hurry(managerKey: string): void {
    if (this.#managerKey !== managerKey) return;
    this.#held = 0;
    this.#waitMs = FIRST_WAIT_MS;
    if (this.#wait) this.#dialAfter(FIRST_WAIT_MS);
  }

  stop(): void {
    this.#stopped = true;
    this.#wait?.callOff();
    this.#callOffDial();
    this.#end?.();
  }

  #dial(): void {
    this.#end = dialLink(new URL(LINK_PATH, this.address), {
      withinMs: DIAL_MS,
      opened: (socket) => this.#link(socket),
      failed: (why) => this.#over(why, 'cut'),
    });
  }

  #link(socket: Socket): void {
    this.#callOffDial();
    let to: ManagerReplica | undefined;
    const address = new URL(this.address).origin;
    const link: WorkerLink = new WorkerLink(linkChannel(socket), {
      ...this.#deps,
      address,
      channel: channelName(socket),
      proved: (manager) => {
        this.#managerKey = manager.managerKey;
        const fingerprint = fingerprintOf(manager.managerKey);
        this.#deps.keys.leadsTo(address, fingerprint);
        this.#deps.templates.leadsTo(address, fingerprint);
        return this.#links.holds(manager) ? 'held' : 'new';
      },
      opened: (manager, replicas) => {
        to = manager;
        this.#links.opened(this.address, link, manager);
        this.#end = undefined;
        this.#waitMs = FIRST_WAIT_MS;
        this.#held = 0;
        this.#told = undefined;
        this.#links.told(manager, replicas);
      },
      told: (manager, replicas) => this.#links.told(manager, replicas),
      over: (why, kind) => {
        if (!to) return this.#over(why, kind);
        if (!this.#stopped) this.#tell(why);
        this.#dialAfter(FIRST_WAIT_MS);
        this.#links.ended(link, to);
      },
    });
    this.#end = () => link.end('the daemon stops', 'cut');
  }

  #over(why: string, kind: LinkEnd): void {
    this.#end = undefined;
    this.#callOffDial();
    if (this.#stopped) return;
    if (kind !== 'held') this.#failed += 1;
    this.#held = kind === 'held' ? this.#held + 1 : 0;
    const inVain = this.#held >= MOST_HELD * this.#replicasMissed();
    if (kind !== 'held') this.#tell(why);
    else if (inVain)
      this.#tell(
        "the address reaches only some of the manager's replicas; it must reach each of them in " +
          'turn',
      );
    this.#dialAfter(kind === 'refused' || inVain ? LONG_WAIT_MS : this.#waitMs);
    this.#waitMs = Math.min(this.#waitMs * 2, MOST_WAIT_MS);
  }

  #replicasMissed(): number {
    return Math.max(1, this.#managerKey === undefined ? 1 : this.#links.missing(this.#managerKey));
  }

  #tell(why: string): void {
    if (this.#told !== why)
      this.#deps.log.warn({ manager: this.address, why }, 'manager-not-linked');
    this.#told = why;
  }

  /** Keeps a shorter wait that is already running. */
  #dialAfter(forMs: number): void {
    const { clock } = this.#deps;
    const until = clock.now() + forMs;
    if (this.#wait && this.#wait.until <= until) return;
    this.#wait?.callOff();
    const callOff = clock.at(until, () => {
      this.#wait = undefined;
      this.consider();
    });
    this.#wait = { until, callOff };
  }
}
