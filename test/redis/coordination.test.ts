import { Redis } from 'ioredis';
import { coordinationSuite } from '../contracts/coordination.ts';
import { aRedisCoordination, known } from '../support/harness/a-redis-coordination.ts';
import { ALICE } from '../support/builders/instance-orders.ts';
import { advanceRedis } from '../support/harness/redis-clock.ts';
import { noRedis, startRedis, startRedisCluster } from '../../local-cluster/redis-server.ts';
import { skipBecause } from '../support/harness/skip-because.ts';
import type { RedisSettings } from '../../src/redis/settings.ts';
import { sampled } from '../support/harness/sampled.ts';

interface Running {
  readonly settings: RedisSettings;
  readonly nodes: readonly Redis[];
  stop(): Promise<void>;
}

const one = async (secure: boolean): Promise<Running> => {
  const redis = await startRedis({ secure });
  return { settings: redis.settings, nodes: [redis.client], stop: () => redis.stop() };
};

for (const [name, start] of [
  ['Redis', () => one(false)],
  ['Redis with TLS and a password', () => one(true)],
  ['a Redis cluster', startRedisCluster],
] as const) {
  describe(`over ${name}`, () => {
    let running: Running;
    before(async function () {
      if (noRedis !== undefined) skipBecause(this, noRedis);
      running = await start();
    });
    after(() => running?.stop());

    sampled(() => {
      coordinationSuite(name, async () => {
        for (const node of running.nodes) await node.flushall();
        const { coordination, stop } = await aRedisCoordination(running.settings, {
          rebuildWaitMs: 0,
        });
        for (const tenant of [ALICE, { ...ALICE, user: 'bob' }])
          await known(() => coordination.used(tenant));
        return { coordination, advance: (ms) => advanceRedis(running.nodes, ms), close: stop };
      });
    });
  });
}
