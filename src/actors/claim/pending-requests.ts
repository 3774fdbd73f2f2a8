import type { RequestFingerprint } from '../../model/request-fingerprint.ts';

/**
 * Requests under an Idempotency-Key whose effect has an unknown outcome; each for about a minute.
 */
export class PendingRequests {
  readonly #work = new Map<string, Promise<void>>();

  /** Adds a request until `work` ends. `work` must not reject. */
  add(mark: RequestFingerprint, work: Promise<void>): void {
    const all = Promise.all([this.#work.get(mark.key), work]).then(() => {
      if (this.#work.get(mark.key) === all) this.#work.delete(mark.key);
    });
    this.#work.set(mark.key, all);
  }

  /** Resolves when the outcome is known; undefined if it is known already. */
  settled(mark: RequestFingerprint): Promise<void> | undefined {
    return this.#work.get(mark.key);
  }
}
