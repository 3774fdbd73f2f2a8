import type { Clock } from '../../contracts/clock.ts';
import { RecentSet } from '../../lib/recent-set.ts';
import type { ApiKeyRecord } from '../../model/api-key.ts';
import { invalidApiKey, unavailable } from '../../model/refusals.ts';

/** A daemon that starts has so long to hear from its managers what was revoked meanwhile. */
export const FIRST_WORD_MS = 3_000;
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
  isCaughtUp: boolean;
}

/**
 * Says whether copies of promoted keys are good at a worker. While a link comes back, and at first
 * after a start, nobody knows which of them were revoked: then they are 503 until the manager has
 * said it, or can not be reached. A cluster without a link goes on by what it has, for `aloneMs`.
 */
export class PromotedTrust {
  readonly #deps: PromotedTrustDeps;
  readonly #links = new Set<TrustedLink>();
  /** Revoked, also where the store could not be told yet: by manager and key. */
  readonly #revoked = new RecentSet(MOST_REVOKED);
  /** Managers that were heard since the start. */
  readonly #heard = new Set<string>();
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
    if (!hasManagers || this.isRevoked(promotedBy, keyId)) throw invalidApiKey();
    const links = [...this.#links].filter(({ manager }) => manager === promotedBy);
    if (links.some(({ isCaughtUp }) => isCaughtUp)) return;
    const isFirst = !this.#heard.has(promotedBy) && clock.now() < this.#alone;
    if (links.length > 0 || isFirst)
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
    const { promotedBy = '' } = copy;
    const lapses = this.lapsesAt(copy);
    return this.managers.includes(promotedBy)
      ? Math.max(lapses, clock.now() + aloneMs / 8)
      : lapses;
  }

  /** A manager proved to be there. */
  begin(manager: string): TrustedLink {
    const link = { manager, isCaughtUp: false };
    this.#links.add(link);
    return link;
  }

  /** All that the manager had to say by now is known. */
  caughtUp(link: TrustedLink): void {
    this.#heard.add(link.manager);
    link.isCaughtUp = true;
  }

  end(link: TrustedLink): void {
    this.#links.delete(link);
  }

  isRevoked(manager: string, keyId: string): boolean {
    return this.#revoked.has(`${manager} ${keyId}`);
  }

  /** Refuses a key of this manager from now on; another manager's of the same id stays good. */
  revoke(manager: string, keyId: string): void {
    this.#revoked.add(`${manager} ${keyId}`);
  }

  /** The managers of links that have caught up. */
  get managers(): readonly string[] {
    const caughtUp = [...this.#links].filter(({ isCaughtUp }) => isCaughtUp);
    return [...new Set(caughtUp.map(({ manager }) => manager))]; // each has a link to every replica
  }
}
