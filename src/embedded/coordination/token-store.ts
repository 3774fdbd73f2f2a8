import { randomBytes } from 'node:crypto';
import type { Clock } from '../../contracts/clock.ts';
import {
  MAX_TOKENS,
  MAX_TOKENS_OF_SANDBOX,
  MAX_TOKENS_OF_TENANT,
  type TokenHolder,
} from '../../contracts/tokens.ts';
import { tokensAllTaken, tooManyTokens } from '../../model/limit-refusals.ts';
import { tenantKey } from '../../model/tenant.ts';

interface Kept {
  readonly value: string;
  readonly expiresAt: number;
  readonly groups: readonly string[];
}

export class TokenStore {
  readonly #clock: Clock;
  readonly #tokens = new Map<string, Kept>();
  /** No group is empty. */
  readonly #groups = new Map<string, Set<string>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  issue(value: string, ttlMs: number, { sandbox, tenant }: TokenHolder): string {
    const groups = [`sandbox ${sandbox}`, `tenant ${tenantKey(tenant)}`] as const;
    if (!this.#hasRoom(groups[0], MAX_TOKENS_OF_SANDBOX))
      throw tooManyTokens('the sandbox has', MAX_TOKENS_OF_SANDBOX);
    if (!this.#hasRoom(groups[1], MAX_TOKENS_OF_TENANT))
      throw tooManyTokens('you have', MAX_TOKENS_OF_TENANT);
    if (this.#tokens.size >= MAX_TOKENS) this.#sweep(this.#tokens.keys());
    if (this.#tokens.size >= MAX_TOKENS) throw tokensAllTaken();
    const token = randomBytes(32).toString('base64url');
    this.#tokens.set(token, { value, expiresAt: this.#clock.now() + ttlMs, groups });
    for (const group of groups) {
      const own = this.#groups.get(group);
      if (own) own.add(token);
      else this.#groups.set(group, new Set([token]));
    }
    return token;
  }

  peek(token: string): string | undefined {
    const found = this.#tokens.get(token);
    return found && found.expiresAt > this.#clock.now() ? found.value : undefined;
  }

  redeem(token: string): string | undefined {
    const value = this.peek(token);
    this.#forget(token);
    return value;
  }

  /** Checks only one group, so a refused caller costs the others little. */
  #hasRoom(group: string, most: number): boolean {
    const own = this.#groups.get(group);
    if (!own || own.size < most) return true;
    this.#sweep(own);
    return own.size < most;
  }

  #sweep(tokens: Iterable<string>): void {
    for (const token of tokens) if (this.peek(token) === undefined) this.#forget(token);
  }

  #forget(token: string): void {
    for (const group of this.#tokens.get(token)?.groups ?? []) {
      const own = this.#groups.get(group);
      own?.delete(token);
      if (own?.size === 0) this.#groups.delete(group);
    }
    this.#tokens.delete(token);
  }
}
