import { within, type Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import { Dialler, type DialTerms, type KnownLinks } from './dialler.ts';
import { MOST_REPLICAS } from './link-words.ts';
import type { ManagerReplica, WorkerLink } from './worker-link.ts';

export interface WorkerLinksDeps extends DialTerms {
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
export class WorkerLinks implements KnownLinks {
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

  holds({ managerKey, replica }: ManagerReplica): boolean {
    return this.#open.get(managerKey)?.has(replica) === true;
  }

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

  told({ managerKey }: ManagerReplica, replicas: number): void {
    this.#wanted.set(managerKey, replicas);
    for (const dialler of this.#diallers) dialler.hurry(managerKey);
    this.#dial();
  }

  #dial(): void {
    for (const dialler of this.#diallers) dialler.consider();
  }
}
