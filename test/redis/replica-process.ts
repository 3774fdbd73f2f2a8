import { aRedisCoordination } from '../support/harness/a-redis-coordination.ts';
import type { RedisSettings } from '../../src/redis/settings.ts';

/**
 * A replica as a process of its own, to be killed: tells its parent what it leads, and gives up
 * what is wanted elsewhere.
 */
const [replica = '', settings = ''] = process.argv.slice(2);
const { coordination } = await aRedisCoordination(JSON.parse(settings) as RedisSettings, {
  replica,
});
const tell = (kind: string, shard: number): void => {
  process.send?.({ kind, shard, epoch: coordination.lease(shard)?.epoch ?? 0 });
};
coordination.follow({
  gained: (shard) => {
    tell('gained', shard);
  },
  lost: (shard, because) => {
    tell(because, shard);
    if (because === 'wanted-elsewhere') void coordination.giveUp(shard);
  },
});
process.once('disconnect', () => process.exit());
setInterval(() => undefined, 60_000);
