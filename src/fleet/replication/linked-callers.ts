import type { Caller } from '../../model/tenant.ts';
import type { ApiKeyMirror } from '../../services/keys/api-keys.ts';
import type { TokenKeys } from '../../actors/sandbox/commands/terminals.ts';

/** Callers that came over a link lately: more than there are open terminals and their tokens. */
const MOST_CALLERS = 20_000;

/**
 * Remembers who came over a link of this worker: their keys are the manager's, and are not known
 * here. The manager has ended what they hold over its links by the time when their keys end; so
 * their keys are good there alone.
 */
export class LinkedCallers {
  readonly #callers = new Map<string, Caller>();
  readonly #came = new WeakSet<Caller>();

  /** Whether this very request came over a link, whatever key it is said to be of. */
  came(caller: Caller): boolean {
    return this.#came.has(caller);
  }

  remember(caller: Caller): void {
    this.#came.add(caller);
    this.#callers.delete(caller.keyId);
    this.#callers.set(caller.keyId, caller);
    if (this.#callers.size <= MOST_CALLERS) return;
    for (const oldest of this.#callers.keys()) {
      this.#callers.delete(oldest);
      return;
    }
  }

  /** Knows the cluster's own keys, and those of linked callers. */
  besides(apiKeys: Pick<ApiKeyMirror, 'good' | 'find' | 'followEnd'>): TokenKeys {
    return {
      good: async (keyId, overLink) =>
        (overLink ? this.#callers.get(keyId) : undefined) ?? (await apiKeys.good(keyId)),
      find: (keyId) => apiKeys.find(keyId) ?? this.#callers.get(keyId),
      followEnd: (keyId, ended, overLink) =>
        overLink && !apiKeys.find(keyId) && this.#callers.has(keyId)
          ? () => undefined
          : apiKeys.followEnd(keyId, ended),
      linked: (keyId) => (apiKeys.find(keyId) ? undefined : this.#callers.get(keyId)),
      remember: (caller) => this.remember(caller),
    };
  }
}
