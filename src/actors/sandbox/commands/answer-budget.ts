import type { Metrics } from '../../../contracts/metrics.ts';
import { answersShareMet, answersTakeAll } from '../../../model/limit-refusals.ts';

export interface AnswerBudgetTerms {
  /** In bytes, for all answers together. */
  readonly mostBytes: number;
  /** Percent of the bytes that others leave. */
  readonly tenantPercent: number;
  readonly metrics: Metrics;
}

/**
 * Counts bytes on the wire until the client has the last one. A tenant gets at most its percentage
 * of what others leave. Never cuts an answer in progress.
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
    // Blames the tenant's share if the answer would not fit even without others, or if the tenant
    // holds more than all others.
    const bound = own > Math.min(others, share * this.#mostBytes) ? 'share' : 'all';
    this.#refused[bound] += 1;
    throw bound === 'share' ? answersShareMet() : answersTakeAll();
  }
}

export class AnswerRoom {
  readonly #change: (bytes: number, must: boolean) => void;
  #held = 0;
  #released = false;

  constructor(change: (bytes: number, must: boolean) => void) {
    this.#change = change;
  }

  /** Throws RATE_LIMITED for the tenant's share, otherwise UNAVAILABLE. */
  hold(bytes: number): void {
    this.#set(bytes, false);
  }

  holdAtLeast(bytes: number): void {
    if (bytes > this.#held) this.hold(bytes);
  }

  /** Without a limit, for the answer to an effect that has already happened. */
  owe(bytes: number): void {
    this.#set(bytes, true);
  }

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
