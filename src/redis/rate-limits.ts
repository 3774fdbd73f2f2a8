import type { RateLimits } from '../contracts/coordination.ts';
import { RateWindows } from '../lib/rate-windows.ts';
import type { Keys } from './keys.ts';
import type { RedisLink } from './redis-link.ts';
import { defineScript } from './script.ts';

/**
 * Counts one in a window that begins with the first. KEYS: count. ARGV: deadline, ms of a window.
 * Answers `ok`, the count, and the ms left.
 */
export const COUNT = defineScript(
  'count',
  `
local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return {'ok', count, redis.call('PTTL', KEYS[1])}
`,
);

/** Counts over all replicas; each its own while Redis is away. */
export const redisRateLimits = ({
  link,
  keys,
}: {
  readonly link: RedisLink;
  readonly keys: Keys;
}): RateLimits => {
  const own = new RateWindows({ now: () => performance.now() });
  return {
    countWithin: async (name, limit, windowMs) => {
      const mine = own.count(name, limit, windowMs);
      try {
        const [, count, leftMs] = await link.run(COUNT, [keys.rate(name)], [windowMs]);
        return Number(count) > limit
          ? { within: false, retryAfterMs: Number(leftMs) }
          : { within: true, retryAfterMs: 0 };
      } catch {
        return mine;
      }
    },
  };
};
