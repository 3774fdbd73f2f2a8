import type { RateLimits } from '../contracts/coordination/rate-limits.ts';
import { RateWindows } from '../lib/rate-windows.ts';
import type { RedisPlace } from './redis-link.ts';

/** While Redis is unreachable, each replica counts by itself. */
export const redisRateLimits = ({ link, keys }: RedisPlace): RateLimits => {
  const own = new RateWindows({ now: () => performance.now() });
  return {
    countWithin: async (name, limit, windowMs) => {
      const mine = own.count(name, limit, windowMs);
      try {
        const [, count, leftMs] = await link.run('count', [keys.rate(name)], [windowMs]);
        return Number(count) > limit
          ? { within: false, retryAfterMs: Number(leftMs) }
          : { within: true, retryAfterMs: 0 };
      } catch {
        return mine;
      }
    },
  };
};
