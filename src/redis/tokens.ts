import { createHash, randomBytes } from 'node:crypto';
import {
  MAX_TOKENS,
  MAX_TOKENS_OF_SANDBOX,
  MAX_TOKENS_OF_TENANT,
  type Tokens,
} from '../contracts/tokens.ts';
import { tokensAllTaken, tooManyTokens } from '../model/limit-refusals.ts';
import { tenantKey } from '../model/tenant.ts';
import type { RedisPlace } from './redis-link.ts';

/** Redis stores only hashes, so reading Redis gives nobody a token. */
export const redisTokens = ({ link, keys }: RedisPlace): Tokens => {
  const names = [keys.tokens, keys.tokenTimes, keys.tokenCounts];
  return {
    issueToken: async (value, ttlMs, { sandbox, tenant }) => {
      const token = randomBytes(32).toString('base64url');
      const limits = [MAX_TOKENS_OF_SANDBOX, MAX_TOKENS_OF_TENANT, MAX_TOKENS];
      const holders = [`sandbox ${sandbox}`, `tenant ${tenantKey(tenant)}`];
      const [answer] = await link.run('issue_token', names, [
        hashOf(token),
        value,
        ttlMs,
        ...holders,
        ...limits,
      ]);
      if (answer === 'sandbox') throw tooManyTokens('the sandbox has', MAX_TOKENS_OF_SANDBOX);
      if (answer === 'tenant') throw tooManyTokens('you have', MAX_TOKENS_OF_TENANT);
      if (answer !== 'ok') throw tokensAllTaken();
      return token;
    },
    peekToken: async (token) => valueOf(await link.run('peek_token', names, [hashOf(token)])),
    redeemToken: async (token) => valueOf(await link.run('redeem_token', names, [hashOf(token)])),
  };
};

const hashOf = (token: string): string => createHash('sha256').update(token).digest('base64url');

const valueOf = ([answer, value]: readonly unknown[]): string | undefined =>
  answer === 'ok' ? String(value) : undefined;
