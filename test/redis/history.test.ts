import { expect } from 'chai';
import { RedisHistory } from '../../src/redis/history.ts';
import type { RedisSettings } from '../../src/redis/settings.ts';
import { systemClock } from '../../src/embedded/system-clock.ts';
import { aFinished, historySuite } from '../contracts/history.ts';
import { eventually } from '../support/eventually.ts';
import { ALICE } from '../support/instance-orders.ts';
import { quietLog } from '../support/quiet-log.ts';
import { noRedis, startRedis, startRedisCluster } from '../../local-cluster/redis-server.ts';
import { skipBecause } from '../support/skip-because.ts';
import { TestClock } from '../support/test-clock.ts';

interface Running { readonly settings: RedisSettings; flush(): Promise<unknown>; stop(): Promise<void> }

const one = async (): Promise<Running> => {
  const { settings, client, stop } = await startRedis();
  return { settings, flush: () => client.flushall(), stop };
};
const cluster = async (): Promise<Running> => {
  const { settings, nodes, stop } = await startRedisCluster();
  return { settings, flush: () => Promise.all(nodes.map((node) => node.flushall())), stop };
};

/** No clock moves on its own, so that nothing is forgotten. */
const KEPT_MS = 10 * 365 * 86_400_000;

for (const [name, start] of [['Redis', one], ['a Redis cluster', cluster]] as const) {
  describe(`history over ${name}`, function () {
    this.timeout(60_000);
    let running: Running;
    before(async function () {
      if (noRedis !== undefined) skipBecause(this, noRedis);
      running = await start();
    });
    after(() => running?.stop());

    historySuite(name, async () => {
      await running.flush();
      const history = new RedisHistory({ settings: running.settings, clock: systemClock(), log: quietLog, retentionMs: KEPT_MS });
      await history.start();
      return { history, close: () => history.stop() };
    });
  });
}

describe('history in Redis', () => {
  before(function () { if (noRedis !== undefined) skipBecause(this, noRedis); });

  it('forgets what is older than retention, in steps, and all that belongs to it', async () => {
    const { settings, client, stop } = await startRedis();
    const clock = new TestClock();
    const history = new RedisHistory({ settings, clock, log: quietLog, retentionMs: 86_400_000 });
    await history.start();
    const old = Array.from({ length: 250 }, (_, n) => aFinished({ claimedAt: clock.now() - 1_000 - n, terminatedAt: clock.now() - n, poolName: `p${n % 3}` }));
    const newer = aFinished({ claimedAt: clock.now() - 2_000, terminatedAt: clock.now() + 3_600_000 });
    await Promise.all([...old, newer].map((finished) => history.record(finished)));
    const event = { at: clock.now(), owner: ALICE, poolName: 'p0', sandboxId: old[0]?.id ?? '', reason: 'Ready' } as const;
    await history.recordEvents([{ id: 1, event }]);

    clock.advance(86_400_000 + 60_000);
    await eventually(async () => {
      clock.advance(100);
      return (await history.list({}, { offset: 0, limit: 1 })).total === 1;
    }, 'the old ones are forgotten');

    expect((await history.list({}, { offset: 0, limit: 10 })).items).to.deep.equal([newer]);
    expect(await history.countByNamespace()).to.deep.equal(new Map([['alpha', 1]]));
    expect(await history.find(old[0]?.id ?? '')).to.equal(undefined);
    clock.advance(86_400_000);
    await eventually(async () => (clock.advance(60_000), (await history.list({}, { offset: 0, limit: 1 })).total === 0), 'the last one is forgotten');
    expect((await client.keys('*')).toSorted()).to.deep.equal(['sandpool:{history}:last-group']);
    await history.stop();
    await stop();
  });
});
