import { setImmediate } from 'node:timers/promises';
import { expect } from 'chai';
import { silentMetrics } from '../../src/contracts/metrics.ts';
import { RedisLink } from '../../src/redis/redis-link.ts';
import { noRedis, startRedisCluster, type RedisCluster } from '../../local-cluster/redis-server.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { eventually } from '../support/harness/eventually.ts';
import { skipBecause } from '../support/harness/skip-because.ts';

describe('a link to a Redis cluster', function () {
  let redis: RedisCluster;
  before(async function () {
    if (noRedis !== undefined) skipBecause(this, noRedis);
    redis = await startRedisCluster();
  });
  after(() => redis?.stop());

  it('starts during an outage of the cluster, and answers once it is up', async () => {
    for (const node of redis.nodes) await node.call('CLUSTER', 'DELSLOTSRANGE', '0', '9');
    await eventually(() => isDown(redis), 'the cluster is down');
    const link = aLink(redis);

    try {
      await link.start();
      expect(link.answering).to.equal(false);

      await redis.nodes[0]?.call('CLUSTER', 'ADDSLOTSRANGE', '0', '9');
      await eventually(() => link.answering, 'it answers');
    } finally {
      link.stop();
    }
  });

  it('leaves no timer behind if it is stopped while it reads the slots', async () => {
    await setImmediate(); // now the test's own is armed
    const before = timers();
    const link = aLink(redis);
    await link.start();
    expect(link.answering).to.equal(true);
    await pauseAll(redis);
    await eventually(() => isAsking(link), 'it asks');

    link.stop();

    await eventually(() => !isAsking(link) && timers() <= before, 'no timer is left');
  });
});

const aLink = ({ settings }: RedisCluster): RedisLink =>
  new RedisLink({ metrics: silentMetrics, settings, name: 'test', log: quietLog });

const isDown = async ({ nodes }: RedisCluster): Promise<boolean> => {
  const infos = await Promise.all(nodes.map((node) => node.call('CLUSTER', 'INFO')));
  return infos.every((info) => String(info).includes('cluster_state:fail'));
};

/** Answers nothing any more. */
const pauseAll = async ({ nodes }: RedisCluster): Promise<void> => {
  for (const node of nodes) await node.call('CLIENT', 'PAUSE', '60000', 'ALL');
};

/** The library's own note, which nothing else tells. */
const isAsking = (link: RedisLink): boolean => Reflect.get(link.client, 'isRefreshing') === true;

const timers = (): number =>
  process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
