import type { RequestFingerprint } from '../../model/request-fingerprint.ts';

/** Each for about a minute. */
export class PendingRequests {
  readonly #work = new Map<string, Promise<void>>();

  /** `work` must not reject. */
  add(mark: RequestFingerprint, work: Promise<void>): void {
    const all = Promise.all([this.#work.get(mark.key), work]).then(() => {
      if (this.#work.get(mark.key) === all) this.#work.delete(mark.key);
    });
    this.#work.set(mark.key, all);
  }

  /** Undefined if the outcome is known already. */
  settled(mark: RequestFingerprint): Promise<void> | undefined {
    return this.#work.get(mark.key);
  }
}
