import { createHash } from 'node:crypto';
import type { Clock } from '../../contracts/clock.ts';
import type { Caller } from '../../model/tenant.ts';

/** Longer than such a token is good. */
const KEPT_MS = 60_000;
const MOST_TOKENS = 20_000;
/** Tokens that a cluster may give in `KEPT_MS`: a cluster that gives more loses its oldest. */
const MOST_OF_CLUSTER = 4_000;
/** Matches a token of a cluster, which may send any text as one. */
const TOKEN = /^[\w-]{1,256}$/;

interface Owner {
  readonly caller: Caller;
  readonly endsAt: number;
}

/**
 * Remembers to whom other clusters gave tokens of terminals: who brings one names no key, and what
 * is passed on ends with the key of who asked, and counts as theirs. Only hashes are kept, and no
 * cluster takes the room of another.
 */
export class TokenOwners {
  readonly #clock: Clock;
  /** By cluster, and by the token's hash; the oldest first. */
  readonly #owners = new Map<string, Map<string, Owner>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns false, and remembers nothing, if the text is not a token. */
  remember(clusterId: string, token: unknown, caller: Caller): boolean {
    if (typeof token !== 'string' || !TOKEN.test(token)) return false;
    const now = this.#clock.now();
    for (const [each, tokens] of this.#owners) this.#forget(each, tokens, now);
    const tokens = this.#owners.get(clusterId) ?? new Map<string, Owner>();
    this.#owners.set(clusterId, tokens);
    const all = [...this.#owners.values()].sort((a, b) => b.size - a.size);
    if (tokens.size >= MOST_OF_CLUSTER) dropOldest(tokens);
    else if (all.reduce((sum, { size }) => sum + size, 0) >= MOST_TOKENS) dropOldest(all[0]);
    tokens.set(hashOf(token), { caller, endsAt: now + KEPT_MS });
    return true;
  }

  /** Undefined of a token that was not given over this manager. */
  ownerOf(clusterId: string, token: string): Caller | undefined {
    return this.#owners.get(clusterId)?.get(hashOf(token))?.caller;
  }

  #forget(clusterId: string, tokens: Map<string, Owner>, now: number): void {
    for (const [oldest, { endsAt }] of tokens) {
      if (endsAt > now) break;
      tokens.delete(oldest);
    }
    if (tokens.size === 0) this.#owners.delete(clusterId);
  }
}

const dropOldest = (tokens: Map<string, Owner> | undefined): void => {
  const [oldest] = tokens?.keys() ?? [];
  if (oldest !== undefined) tokens?.delete(oldest);
};

const hashOf = (token: string): string => createHash('sha256').update(token).digest('base64');
