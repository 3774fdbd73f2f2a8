import type { Clock } from '../../contracts/clock.ts';
import type { ApiKeyRecord } from '../../model/api-key.ts';

export interface KeyEndsDeps {
  readonly clock: Clock;
  /** The key as it stands; undefined: it is revoked. */
  readonly find: (keyId: string) => ApiKeyRecord | undefined;
  /** When it ends, as far as is known; absent: when it expires. */
  readonly endsAt?: (record: ApiKeyRecord) => number;
}

/** The followers of one key, and what ends the wait for its expiry. */
interface Followed {
  readonly ended: Set<() => void>;
  cancel: () => void;
}

/**
 * Tells whoever goes on under a key when it is worth nothing any more: revoked, or expired, or of a
 * manager that is not heard. What is followed is bounded by its followers.
 */
export class KeyEnds {
  readonly #deps: KeyEndsDeps;
  readonly #followed = new Map<string, Followed>();

  constructor(deps: KeyEndsDeps) {
    this.#deps = deps;
  }

  /** Keys that somebody follows. */
  get size(): number {
    return this.#followed.size;
  }

  /** Calls `ended` once; at once where the key is worth nothing now. Answers the way to end it. */
  follow(keyId: string, ended: () => void): () => void {
    const own = (): void => {
      ended();
    }; // each counts, also one given twice
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

  /** To be called when what `find` says of the key is another than before. */
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
