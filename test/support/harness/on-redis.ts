import { noRedis, startRedis, type RedisServer } from '../../../local-cluster/redis-server.ts';
import { skipBecause } from './skip-because.ts';

/** From the suite's first hook on, empty before each test; skips without Redis. */
export const onRedis = (): (() => RedisServer) => {
  let redis: RedisServer | undefined;
  before('a Redis', async function () {
    if (noRedis !== undefined) skipBecause(this, noRedis);
    redis = await startRedis();
  });
  beforeEach('an empty Redis', () => redis?.client.flushall());
  after('the Redis', () => redis?.stop());
  return () => {
    if (!redis) throw new Error('there is a Redis from the first before hook on, not earlier');
    return redis;
  };
};
