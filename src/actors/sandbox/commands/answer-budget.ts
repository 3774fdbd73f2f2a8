import type { Metrics } from '../../../contracts/metrics.ts';
import { answersShareMet, answersTakeAll } from '../../../model/limit-refusals.ts';

export interface AnswerBudgetTerms {
  /** Bytes that all answers may hold together. */
  readonly mostBytes: number;
  /** Says what one tenant may have of what the others leave, in percent. */
  readonly tenantPercent: number;
  readonly metrics: Metrics;
}

/**
 * The memory for answers, in bytes as they will be on the wire: from the first byte that is
 * gathered until the last one is with the client. A tenant has at most its percentage of what the
 * others leave, so that some is left for whoever comes next. What does not fit is refused; no
 * answer that was begun is cut for another's sake.
 */
export class AnswerBudget {
  readonly #mostBytes: number;
  readonly #tenantPercent: number;
  readonly #ofTenant = new Map<string, number>();
  readonly #refused = { share: 0, all: 0 };
  #held = 0;

  constructor({ mostBytes, tenantPercent, metrics }: AnswerBudgetTerms) {
    this.#mostBytes = mostBytes;
    this.#tenantPercent = tenantPercent;
    metrics.read('sandpool_answer_bytes', () => [{ labels: {}, value: this.#held }]);
    metrics.read('sandpool_answer_bytes_most', () => [{ labels: {}, value: mostBytes }]);
    metrics.read('sandpool_answers_refused_total', () => [
      { labels: { bound: 'share' }, value: this.#refused.share },
      { labels: { bound: 'all' }, value: this.#refused.all },
    ]);
  }

  /** Room for one answer of the tenant's, of which nothing is taken yet. */
  room(tenant: string): AnswerRoom {
    return new AnswerRoom((bytes, must) => {
      this.#change(tenant, bytes, must);
    });
  }

  #change(tenant: string, bytes: number, must: boolean): void {
    const own = (this.#ofTenant.get(tenant) ?? 0) + bytes;
    if (bytes > 0 && !must) this.#requireRoom(own, this.#held + bytes - own);
    this.#held += bytes;
    if (own > 0) this.#ofTenant.set(tenant, own);
    else this.#ofTenant.delete(tenant);
  }

  #requireRoom(own: number, others: number): void {
    const share = this.#tenantPercent / 100;
    if (own <= share * (this.#mostBytes - others)) return;
    // What would be too much for one tenant alone is its own doing, and so is what it has more of
    // than all others.
    const bound = own > Math.min(others, share * this.#mostBytes) ? 'share' : 'all';
    this.#refused[bound] += 1;
    throw bound === 'share' ? answersShareMet() : answersTakeAll();
  }
}

/** Holds what one answer takes of the budget. */
export class AnswerRoom {
  readonly #change: (bytes: number, must: boolean) => void;
  #held = 0;
  #released = false;

  constructor(change: (bytes: number, must: boolean) => void) {
    this.#change = change;
  }

  /**
   * From now on so many bytes. Throws where they don't fit: RATE_LIMITED by the tenant's share,
   * else UNAVAILABLE.
   */
  hold(bytes: number): void {
    this.#set(bytes, false);
  }

  /** At least so many; the same otherwise. */
  holdAtLeast(bytes: number): void {
    if (bytes > this.#held) this.hold(bytes);
  }

  /** Counts so many, whether they fit or not: for the answer to what is done already. */
  owe(bytes: number): void {
    this.#set(bytes, true);
  }

  /** The answer is with its client, or will not be. Nothing is counted here any more. */
  release(): void {
    this.#set(0, true);
    this.#released = true;
  }

  #set(bytes: number, must: boolean): void {
    if (this.#released) return;
    this.#change(bytes - this.#held, must);
    this.#held = bytes;
  }
}
