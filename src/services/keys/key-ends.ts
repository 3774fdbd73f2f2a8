import type { Clock } from '../../contracts/clock.ts';
import type { ApiKeyRecord } from '../../model/api-key.ts';

export interface KeyEndsDeps {
  readonly clock: Clock;
  readonly find: (keyId: string) => ApiKeyRecord | undefined;
  readonly endsAt?: (record: ApiKeyRecord) => number;
}

interface Followed {
  readonly ended: Set<() => void>;
  cancel: () => void;
}

/**
 * A key becomes invalid when it is revoked, expires, or its manager is silent for too long. Memory
 * is bounded by the number of followers.
 */
export class KeyEnds {
  readonly #deps: KeyEndsDeps;
  readonly #followed = new Map<string, Followed>();

  constructor(deps: KeyEndsDeps) {
    this.#deps = deps;
  }

  get size(): number {
    return this.#followed.size;
  }

  /**
   * Calls `ended` once; at once if the key is already invalid. Returns a function that
   * unsubscribes.
   */
  follow(keyId: string, ended: () => void): () => void {
    const own = (): void => {
      ended();
    }; // a function given twice counts twice
    const known = this.#followed.get(keyId);
    if (known) known.ended.add(own);
    else {
      this.#followed.set(keyId, { ended: new Set([own]), cancel: () => undefined });
      this.changed(keyId);
    }
    return () => {
      const followed = this.#followed.get(keyId);
      if (!followed?.ended.delete(own) || followed.ended.size > 0) return;
      followed.cancel();
      this.#followed.delete(keyId);
    };
  }

  /** Must be called when the result of `find` changes for the key. */
  changed(keyId: string): void {
    const followed = this.#followed.get(keyId);
    if (!followed) return;
    const { clock, find, endsAt = ({ expiresAt }: ApiKeyRecord) => expiresAt } = this.#deps;
    followed.cancel();
    const record = find(keyId);
    const end = record ? endsAt(record) : 0;
    if (end > clock.now()) {
      followed.cancel = clock.at(end, () => {
        this.changed(keyId);
      });
      return;
    }
    this.#followed.delete(keyId);
    for (const ended of followed.ended) ended();
  }
}
