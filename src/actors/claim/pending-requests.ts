import type { RequestFingerprint } from '../../model/request-fingerprint.ts';

/**
 * Requests under an Idempotency-Key of which it is not known yet whether what they began has
 * landed; each for a minute or so.
 */
export class PendingRequests {
  readonly #work = new Map<string, Promise<void>>();

  /** Until the work is over; it never rejects. */
  add(mark: RequestFingerprint, work: Promise<void>): void {
    const all = Promise.all([this.#work.get(mark.key), work]).then(() => {
      if (this.#work.get(mark.key) === all) this.#work.delete(mark.key);
    });
    this.#work.set(mark.key, all);
  }

  /** Resolves once it is known; undefined where it is. */
  settled(mark: RequestFingerprint): Promise<void> | undefined {
    return this.#work.get(mark.key);
  }
}
