import { expect } from 'chai';
import { recentAuditSuite } from '../contracts/recent-audit.ts';
import { aRedisCoordination } from '../support/harness/a-redis-coordination.ts';
import { eventually } from '../support/harness/eventually.ts';
import { onRedis } from '../support/harness/on-redis.ts';
import { rejection } from '../support/harness/rejection.ts';

describe('the recent audit lines in Redis', function () {
  const redis = onRedis();
  let prefixes = 0;
  const onAPrefixOfItsOwn = () => ({ ...redis().settings, prefix: `audit-${(prefixes += 1)}` });

  recentAuditSuite('Redis', async () => {
    const { recentAudit, stop } = await aRedisCoordination(onAPrefixOfItsOwn());
    return { recent: recentAudit, close: stop };
  });

  it('come from all replicas', async () => {
    const settings = onAPrefixOfItsOwn();
    const [one, other] = await Promise.all([
      aRedisCoordination(settings),
      aRedisCoordination(settings, { replica: 'replica-2' }),
    ]);
    one.recentAudit.add(['{"of":"one"}']);
    await eventually(
      async () => (await other.recentAudit.before(undefined, 10)).length === 1,
      'it is there',
    );
    other.recentAudit.add(['{"of":"other"}']);
    await eventually(
      async () => (await one.recentAudit.before(undefined, 10)).length === 2,
      'both are there',
    );

    expect((await one.recentAudit.before(undefined, 10)).map(({ line }) => line)).to.deep.equal([
      '{"of":"other"}',
      '{"of":"one"}',
    ]);
    await Promise.all([one.stop(), other.stop()]);
  });

  it('are unavailable with Redis, without an effect on their writers', async () => {
    const { recentAudit, stop } = await aRedisCoordination({
      ...redis().settings,
      urls: ['redis://127.0.0.1:1'],
    });
    recentAudit.add(['{"a":1}']);

    expect(await rejection(recentAudit.before(undefined, 1))).to.include({ code: 'UNAVAILABLE' });
    await stop();
  });
});
