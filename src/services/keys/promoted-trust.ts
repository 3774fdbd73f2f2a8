import type { Clock } from '../../contracts/clock.ts';
import { RecentSet } from '../../lib/recent-set.ts';
import type { ApiKeyRecord } from '../../model/api-key.ts';
import { invalidApiKey, unavailable } from '../../model/refusals.ts';

/** A daemon that starts has so long to hear from its managers what was revoked meanwhile. */
const FIRST_WORD_MS = 3_000;
const MOST_REVOKED = 10_000;

export interface PromotedTrustDeps {
  readonly clock: Clock;
  /** Whether this cluster is a worker of any manager; of one that is not, no copy is good. */
  readonly hasManagers: boolean;
  /** How long a copy is good after its manager last said so, while that one is not heard. */
  readonly aloneMs: number;
}

type Copy = Pick<ApiKeyRecord, 'keyId' | 'promotedBy' | 'confirmedAt'>;

/** One link to a manager, from when the manager has proved to be it until the link is over. */
export interface TrustedLink {
  readonly manager: string;
  /** It has begun to say which keys are good. */
  speaks: boolean;
  isCaughtUp: boolean;
  /** Those that it said are good, and not that they are gone. */
  readonly good: Set<string>;
  /** Copies that there were when it began, of which it may know the end; none once caught up. */
  readonly stood: Set<string>;
  /** Those that ended while it stood: what it says of them may be older. */
  readonly ended: Set<string>;
}

/**
 * Says whether copies of promoted keys are good at a worker. While a link that comes back tells of
 * them, and at first after a start, nobody knows which were revoked: then they are 503 until the
 * manager has said it, or can not be reached. A cluster without a link goes on by what it has, for
 * `aloneMs`.
 *
 * Each replica of a manager tells by a link of its own, in its own order. So while any link has
 * caught up, a copy is good where one of these says so. The word that a key is gone counts for
 * good; a copy that ended otherwise is good again once a link tells of it that can not be late.
 */
export class PromotedTrust {
  readonly #deps: PromotedTrustDeps;
  readonly #links = new Set<TrustedLink>();
  /** Revoked, also where the store could not be told yet: by manager and key. */
  readonly #revoked = new RecentSet(MOST_REVOKED);
  /** Ended, until they are told of again: by manager and key. */
  readonly #ended = new RecentSet(MOST_REVOKED);
  /** Managers that were heard since the start. */
  readonly #heard = new Set<string>();
  /** The managers are cut off: no copy is good, until one of them is linked again. */
  #isCutOff = false;
  #startedAt = 0;
  #alone = Infinity;

  constructor(deps: PromotedTrustDeps) {
    this.#deps = deps;
  }

  /** Links are opened from now on. */
  start(): void {
    this.#startedAt = this.#deps.clock.now();
    this.#alone = this.#startedAt + FIRST_WORD_MS;
  }

  /** Refuses with INVALID_API_KEY what is revoked, with UNAVAILABLE what may be. */
  check(copy: Copy): void {
    const { keyId, promotedBy = '' } = copy;
    const { clock, hasManagers } = this.#deps;
    if (!hasManagers || this.#isCutOff || this.isOver(promotedBy, keyId)) throw invalidApiKey();
    if (this.isTold(copy)) return;
    const isFirst = !this.#heard.has(promotedBy) && clock.now() < this.#alone;
    // a manager that proved to be there may not get to say anything, for as long as its store hangs
    if (isFirst || this.#linksTo(promotedBy).some(({ speaks }) => speaks))
      throw unavailable('the manager is about to say whether this key is still good; try again');
    if (clock.now() >= this.lapsesAt(copy))
      throw unavailable(
        'the manager that this key is of has not been heard for too long; the key is good again ' +
          'once it is, and keys of this cluster are good all the time',
      );
  }

  /** When the copy is good no more, unless its manager says once more that it is. */
  lapsesAt(copy: Pick<ApiKeyRecord, 'confirmedAt'>): number {
    return this.confirmedAt(copy) + this.#deps.aloneMs;
  }

  /** When its manager last said that it is good; the daemon's start where it does not say so. */
  confirmedAt({ confirmedAt = this.#startedAt }: Pick<ApiKeyRecord, 'confirmedAt'>): number {
    return confirmedAt;
  }

  /** Until when at least what goes on under the copy may go on, unless it is revoked. */
  endsAt(copy: Copy): number {
    const { clock, aloneMs } = this.#deps;
    const { keyId, promotedBy = '' } = copy;
    if (this.isOver(promotedBy, keyId)) return 0;
    const lapses = this.lapsesAt(copy);
    return this.managers.includes(promotedBy)
      ? Math.max(lapses, clock.now() + aloneMs / 8)
      : lapses;
  }

  /** Refuses every copy until a manager is linked again. */
  cutOff(): void {
    this.#isCutOff = true;
  }

  /** A manager proved to be there. `stood`: its keys of which there are copies. */
  begin(manager: string, stood: Iterable<string>): TrustedLink {
    const link: TrustedLink = {
      ...{ manager, speaks: false, isCaughtUp: false, stood: new Set(stood) },
      ...{ good: new Set<string>(), ended: new Set<string>() },
    };
    this.#links.add(link);
    this.#isCutOff = false;
    return link;
  }

  /** A link says that a key is good; false where that is late, and counts for nothing. */
  tell(link: TrustedLink, keyId: string): boolean {
    if (this.isRevoked(link.manager, keyId) || link.ended.has(keyId)) return false;
    link.good.add(keyId);
    this.#ended.delete(nameOf(link.manager, keyId));
    return true;
  }

  /**
   * All that the manager had to say by now is known. Returns the keys that are gone: those that
   * stood when the link began, after which its list was read, and are not in that. What another
   * link told since may be newer than the list.
   */
  caughtUp(link: TrustedLink): readonly string[] {
    const gone = [...link.stood].filter((keyId) => !link.good.has(keyId));
    for (const keyId of gone) {
      this.#ended.add(nameOf(link.manager, keyId));
      for (const each of this.#linksTo(link.manager)) {
        each.good.delete(keyId);
        each.ended.add(keyId);
      }
    }
    link.stood.clear();
    this.#heard.add(link.manager);
    link.isCaughtUp = true;
    return gone;
  }

  end(link: TrustedLink): void {
    this.#links.delete(link);
  }

  /** Whether the key was revoked, or ended otherwise and was not told of again. */
  isOver(manager: string, keyId: string): boolean {
    return this.isRevoked(manager, keyId) || this.#ended.has(nameOf(manager, keyId));
  }

  /** Whether a link that has caught up says that the copy is good. */
  isTold({ keyId, promotedBy = '' }: Copy): boolean {
    return this.#linksTo(promotedBy).some(({ isCaughtUp, good }) => isCaughtUp && good.has(keyId));
  }

  isRevoked(manager: string, keyId: string): boolean {
    return this.#revoked.has(nameOf(manager, keyId));
  }

  /** Refuses a key of this manager for good; another manager's of the same id stays good. */
  revoke(manager: string, keyId: string): void {
    this.#revoked.add(nameOf(manager, keyId));
    for (const { good } of this.#linksTo(manager)) good.delete(keyId);
  }

  /** Refuses a key of this manager until that one tells of it again. */
  endCopy(manager: string, keyId: string): void {
    this.#ended.add(nameOf(manager, keyId));
    for (const { good } of this.#linksTo(manager)) good.delete(keyId);
  }

  /**
   * Goes on refusing a copy that has ended, and that the store keeps; false where a link told of it
   * again meanwhile.
   */
  refuse(manager: string, keyId: string): boolean {
    if (this.#linksTo(manager).some(({ good }) => good.has(keyId))) return false;
    this.#ended.add(nameOf(manager, keyId));
    return true;
  }

  /** The managers of links that have caught up. */
  get managers(): readonly string[] {
    const caughtUp = [...this.#links].filter(({ isCaughtUp }) => isCaughtUp);
    return [...new Set(caughtUp.map(({ manager }) => manager))]; // each has a link to every replica
  }

  /** Whether there is any link to a manager. */
  isLinked(manager: string): boolean {
    return this.#linksTo(manager).length > 0;
  }

  #linksTo(manager: string): readonly TrustedLink[] {
    return [...this.#links].filter((link) => link.manager === manager);
  }
}

const nameOf = (manager: string, keyId: string): string => `${manager} ${keyId}`;
