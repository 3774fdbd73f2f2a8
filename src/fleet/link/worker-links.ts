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
  /** Addresses of the managers, `ws://` or `wss://`. */
  readonly managers: readonly string[];
}

/** Says how a worker stands to the manager that answers at an address. */
export interface ManagerStanding {
  readonly address: string;
  /** Links to it, whichever address they were dialled at. */
  readonly links: number;
  /** Dials at this address that came to no link. */
  readonly failed: number;
}

/**
 * Keeps a link open to each replica of each manager, and opens it anew where it was cut, within a
 * second or so. One address may lead to any replica: it is dialled until each that the manager says
 * it has is linked.
 */
export class WorkerLinks {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #diallers: readonly Dialler[];
  /** By the manager's key, by its replica. */
  readonly #open = new Map<string, Map<string, WorkerLink>>();
  /** How many replicas each manager says it has. */
  readonly #wanted = new Map<string, number>();

  constructor(deps: WorkerLinksDeps) {
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.#diallers = deps.managers.map((address) => new Dialler(address, deps, this));
  }

  start(): void {
    this.#dial();
  }

  /** Has managers send nothing more over the links; what is under way goes on. */
  leave(): void {
    for (const dialler of this.#diallers) dialler.stop();
    for (const links of this.#open.values()) for (const link of links.values()) link.leave();
  }

  /** Resolves once nothing is under way over the links any more, or after `withinMs`. */
  async drained(withinMs: number): Promise<void> {
    const links = [...this.#open.values()].flatMap((each) => [...each.values()]);
    await within(this.#clock, withinMs, Promise.all(links.map((link) => link.idle())));
  }

  /** Counts those that stand. */
  get size(): number {
    return [...this.#open.values()].reduce((sum, links) => sum + links.size, 0);
  }

  /** How it stands with each address; two of them may lead to one manager. */
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

  /** Says whether a link to this replica stands. */
  holds({ managerKey, replica }: ManagerReplica): boolean {
    return this.#open.get(managerKey)?.has(replica) === true;
  }

  /** Counts the links to a manager that are missing. */
  missing(managerKey: string): number {
    const wanted = Math.min(this.#wanted.get(managerKey) ?? 1, MOST_REPLICAS);
    return wanted - (this.#open.get(managerKey)?.size ?? 0);
  }

  opened(manager: string, link: WorkerLink, to: ManagerReplica): void {
    const links = this.#open.get(to.managerKey) ?? new Map<string, WorkerLink>();
    links.get(to.replica)?.end('another link took its place', 'cut');
    links.set(to.replica, link);
    this.#open.set(to.managerKey, links);
    this.#log.info({ manager, replica: to.replica }, 'linked to a manager');
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

  /** The manager says how many replicas it has. */
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
/** For a dial that is answered byte by byte, from its start until a link begins. */
const MOST_DIAL_MS = 10_000;
/** The first wait after a cut; each further one is twice as long. */
const FIRST_WAIT_MS = 100;
const MOST_WAIT_MS = 1_000;
/** The wait after a refusal, which haste does not help. */
const LONG_WAIT_MS = 5_000;
/** Dials in a row that lead to replicas which are linked already, for each replica there is. */
const MOST_HELD = 10;

/** Opens links to whatever answers at one address, one at a time, as long as any are missing. */
class Dialler {
  readonly address: string;
  readonly #deps: WorkerLinksDeps;
  readonly #links: WorkerLinks;
  #managerKey: string | undefined;
  /** Ends the dial, or the link, that there is. */
  #end: (() => void) | undefined;
  #waitMs = FIRST_WAIT_MS;
  #held = 0;
  /** The wait until the next dial, where there is one. */
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

  /** The manager that answered here last, by its key. */
  get managerKey(): string | undefined {
    return this.#managerKey;
  }

  /** Counts dials that came to no link; those do not count that led to a replica linked before. */
  get failed(): number {
    return this.#failed;
  }

  /** Dials where a link is missing, and it does not already. */
  consider(): void {
    if (this.#stopped || this.#end || this.#wait) return;
    if (this.#managerKey !== undefined && this.#links.missing(this.#managerKey) <= 0) return;
    const { clock } = this.#deps;
    this.#callOffDial = clock.at(clock.now() + MOST_DIAL_MS, () => this.#end?.());
    this.#dial();
  }

  /** Waits no longer than after a cut: the manager has other replicas than before. */
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

  /** Waits, and dials again, where a link came to nothing. */
  #over(why: string, kind: LinkEnd): void {
    this.#end = undefined;
    this.#callOffDial();
    if (this.#stopped) return;
    if (kind !== 'held') this.#failed += 1;
    this.#held = kind === 'held' ? this.#held + 1 : 0;
    const inVain = this.#held >= MOST_HELD * this.#replicasMissed();
    if (kind !== 'held') this.#tell(why);
    else if (inVain) this.#tell('it leads to some of its replicas alone; it must to each in turn');
    this.#dialAfter(kind === 'refused' || inVain ? LONG_WAIT_MS : this.#waitMs);
    this.#waitMs = Math.min(this.#waitMs * 2, MOST_WAIT_MS);
  }

  #replicasMissed(): number {
    return Math.max(1, this.#managerKey === undefined ? 1 : this.#links.missing(this.#managerKey));
  }

  /** Logs why there is no link; the same cause again and again is one line. */
  #tell(why: string): void {
    if (this.#told !== why)
      this.#deps.log.warn({ manager: this.address, why }, 'no link to a manager');
    this.#told = why;
  }

  /** Dials once that is over, or sooner where a shorter wait is under way already. */
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
