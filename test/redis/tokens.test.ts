import { expect } from 'chai';
import { noRedis, startRedis, type RedisServer } from '../../local-cluster/redis-server.ts';
import { aRedisCoordination } from '../support/harness/a-redis-coordination.ts';
import { ALICE } from '../support/builders/instance-orders.ts';
import { skipBecause } from '../support/harness/skip-because.ts';

describe('tokens in Redis', function () {
  let redis: RedisServer;

  before(async function () {
    if (noRedis !== undefined) skipBecause(this, noRedis);
    redis = await startRedis();
  });
  after(() => redis?.stop());

  it('cannot be read there, and leave nothing behind after their use', async () => {
    const { coordination, stop } = await aRedisCoordination(redis.settings, { rebuildWaitMs: 0 });
    try {
      const issue = (n: number) =>
        coordination.issueToken('the value', 30_000, { sandbox: `s-${n % 2}`, tenant: ALICE });
      const tokens = await Promise.all(Array.from({ length: 8 }, (_, n) => issue(n)));

      const keys = await redis.client.keys('*{tokens}*');
      const dumps = await Promise.all(keys.map((key) => redis.client.dumpBuffer(key)));
      expect(keys).to.have.length(3);
      for (const token of tokens)
        expect(dumps.some((dump) => dump?.includes(token))).to.equal(false);

      for (const token of tokens)
        expect(await coordination.redeemToken(token)).to.equal('the value');
      expect(await redis.client.keys('*{tokens}*')).to.deep.equal([]);
    } finally {
      await stop();
    }
  });
});
