import { randomBytes } from 'node:crypto';
import type { Tokens } from '../contracts/coordination.ts';
import { unavailable } from '../model/refusals.ts';
import type { Keys } from './keys.ts';
import type { RedisLink } from './redis-link.ts';
import { ISSUE_TOKEN, PEEK_TOKEN, REDEEM_TOKEN } from './scripts/tokens.ts';

export const TOKEN_SCRIPTS = [ISSUE_TOKEN, PEEK_TOKEN, REDEEM_TOKEN] as const;

/** Tokens that wait to be redeemed at one time. */
export const MAX_TOKENS = 10_000;

/** One-time tokens that every replica redeems. */
export const redisTokens = ({ link, keys }: { readonly link: RedisLink; readonly keys: Keys }): Tokens => ({
  issueToken: async (value, ttlMs) => {
    const token = randomBytes(32).toString('base64url');
    const [answer] = await link.run(ISSUE_TOKEN, [keys.tokens, keys.tokenTimes], [token, value, ttlMs, MAX_TOKENS]);
    if (answer !== 'ok') throw unavailable('too many tokens are waiting to be used; try again shortly', 5);
    return token;
  },
  peekToken: async (token) => valueOf(await link.run(PEEK_TOKEN, [keys.tokens, keys.tokenTimes], [token])),
  redeemToken: async (token) => valueOf(await link.run(REDEEM_TOKEN, [keys.tokens, keys.tokenTimes], [token])),
});

const valueOf = ([answer, value]: readonly unknown[]): string | undefined => (answer === 'ok' ? String(value) : undefined);
