import type { Clock } from '../../contracts/clock.ts';
import type { ApiKeyRecord } from '../../model/api-key.ts';
import { LinkReports } from '../../model/fleet/link-reports.ts';
import { invalidApiKey, unavailable } from '../../model/refusals.ts';

/** A daemon that starts has so long to hear from its managers what was revoked meanwhile. */
const FIRST_WORD_MS = 3_000;

export interface PromotedTrustDeps {
  readonly clock: Clock;
  /** Whether this cluster is a worker of any manager; of one that is not, no copy is good. */
  readonly hasManagers: boolean;
  /** How long a copy is good after its manager last said so, while that one is not heard. */
  readonly aloneMs: number;
}

type Copy = Pick<ApiKeyRecord, 'keyId' | 'promotedBy' | 'confirmedAt'>;

/**
 * Says whether copies of promoted keys are good at a worker. While a link that comes back reports
 * them, and at first after a start, nobody knows which were revoked: then they are 503 until the
 * manager has said it, or can not be reached. A cluster without a link goes on by what it has, for
 * `aloneMs`.
 */
export class PromotedTrust {
  readonly reports = new LinkReports();
  readonly #deps: PromotedTrustDeps;
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
    const { reports } = this;
    if (!hasManagers || reports.isCutOff || reports.isOver(promotedBy, keyId))
      throw invalidApiKey();
    if (reports.isReported(promotedBy, keyId)) return;
    const isFirst = !reports.wasHeard(promotedBy) && clock.now() < this.#alone;
    // a manager that proved to be there may not get to say anything, for as long as its store hangs
    if (isFirst || reports.isSpeaking(promotedBy))
      throw unavailable(
        'the manager has not confirmed yet that this key is still valid; try again',
      );
    if (clock.now() >= this.#lapsesAt(copy))
      throw unavailable(
        'the manager of this key has not been reached for too long; the key works again when ' +
          'the manager is reached, and keys of this cluster always work',
      );
  }

  /** When its manager last said that it is good; the daemon's start where it does not say so. */
  confirmedAt({ confirmedAt = this.#startedAt }: Pick<ApiKeyRecord, 'confirmedAt'>): number {
    return confirmedAt;
  }

  /** Until when at least what goes on under the copy may go on, unless it is revoked. */
  endsAt(copy: Copy): number {
    const { clock, aloneMs } = this.#deps;
    const { keyId, promotedBy = '' } = copy;
    if (this.reports.isOver(promotedBy, keyId)) return 0;
    const lapses = this.#lapsesAt(copy);
    return this.reports.managers.includes(promotedBy)
      ? Math.max(lapses, clock.now() + aloneMs / 8)
      : lapses;
  }

  /** When the copy is good no more, unless its manager says once more that it is. */
  #lapsesAt(copy: Pick<ApiKeyRecord, 'confirmedAt'>): number {
    return this.confirmedAt(copy) + this.#deps.aloneMs;
  }
}
