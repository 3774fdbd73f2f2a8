import type { Clock } from '../../contracts/clock.ts';
import type { ApiKeyRecord } from '../../model/api-key.ts';
import { LinkReports } from '../../model/fleet/link-reports.ts';
import { invalidApiKey, unavailable } from '../../model/refusals.ts';

/** In ms after start, for the managers to report earlier revocations. */
const FIRST_WORD_MS = 3_000;

export interface PromotedTrustDeps {
  readonly clock: Clock;
  /** If false, every copy is invalid. */
  readonly hasManagers: boolean;
  /**
   * In ms: a copy stays valid this long after its manager last confirmed it, while the manager is
   * silent.
   */
  readonly aloneMs: number;
}

type Copy = Pick<ApiKeyRecord, 'keyId' | 'promotedBy' | 'confirmedAt'>;

/**
 * After a start, and while a restored link reports its keys, revocations may be missing: copies get
 * 503 until the manager has reported, or is unreachable.
 */
export class PromotedTrust {
  readonly reports = new LinkReports();
  readonly #deps: PromotedTrustDeps;
  #startedAt = 0;
  #alone = Infinity;

  constructor(deps: PromotedTrustDeps) {
    this.#deps = deps;
  }

  /** Links may open from now on. */
  start(): void {
    this.#startedAt = this.#deps.clock.now();
    this.#alone = this.#startedAt + FIRST_WORD_MS;
  }

  /**
   * Refuses with INVALID_API_KEY a revoked copy, and with UNAVAILABLE a copy that may be revoked.
   */
  check(copy: Copy): void {
    const { keyId, promotedBy = '' } = copy;
    const { clock, hasManagers } = this.#deps;
    const { reports } = this;
    if (!hasManagers || reports.isCutOff || reports.isOver(promotedBy, keyId))
      throw invalidApiKey();
    if (reports.isReported(promotedBy, keyId)) return;
    const isFirst = !reports.wasHeard(promotedBy) && clock.now() < this.#alone;
    // a connected manager may be unable to report as long as its store hangs
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

  confirmedAt({ confirmedAt = this.#startedAt }: Pick<ApiKeyRecord, 'confirmedAt'>): number {
    return confirmedAt;
  }

  /** Earliest time at which work under the copy must end, unless it is revoked. */
  endsAt(copy: Copy): number {
    const { clock, aloneMs } = this.#deps;
    const { keyId, promotedBy = '' } = copy;
    if (this.reports.isOver(promotedBy, keyId)) return 0;
    const lapses = this.#lapsesAt(copy);
    return this.reports.managers.includes(promotedBy)
      ? Math.max(lapses, clock.now() + aloneMs / 8)
      : lapses;
  }

  /** Unless its manager confirms it again. */
  #lapsesAt(copy: Pick<ApiKeyRecord, 'confirmedAt'>): number {
    return this.confirmedAt(copy) + this.#deps.aloneMs;
  }
}
