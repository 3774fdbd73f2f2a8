import { MOST_REPLICAS } from './link-words.ts';

/** A link that is not open yet, or a connection that is yet to be one. */
export interface PendingLink {
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
