import { expect } from 'chai';
import { RedisChannels } from '../../src/redis/channels.ts';
import { keysOf } from '../../src/redis/keys.ts';
import { RedisLink } from '../../src/redis/redis-link.ts';
import { eventually } from '../support/harness/eventually.ts';
import { FakeRedis } from '../support/fakes/fake-redis.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

describe('channels of a Redis that fails right after its return', function () {
  let redis: FakeRedis;
  let link: RedisLink;
  let channels: RedisChannels;
  const unhandled: unknown[] = [];
  const onUnhandled = (error: unknown): void => {
    unhandled.push(error);
  };
  let mochas: NodeJS.UnhandledRejectionListener[] = [];

  beforeEach(async () => {
    mochas = process.listeners('unhandledRejection');
    process.removeAllListeners('unhandledRejection').on('unhandledRejection', onUnhandled);
    unhandled.length = 0;
    redis = new FakeRedis();
    await redis.start();
    const { settings } = redis;
    link = new RedisLink({ metrics: silentMetrics, settings, name: 'test', log: quietLog });
    channels = new RedisChannels({
      link,
      settings,
      keys: keysOf(settings.prefix),
      log: quietLog,
      others: [],
    });
    await Promise.all([link.start(), channels.start()]);
  });
  afterEach(async () => {
    channels.stop();
    link.stop();
    await redis.stop();
    process.off('unhandledRejection', onUnhandled);
    for (const listener of mochas) process.on('unhandledRejection', listener);
  });

  const hears = async (keyId: string): Promise<void> => {
    const heard: string[] = [];
    const forget = channels.subscribeRevocations((told) => {
      heard.push(told);
    });
    await eventually(() => {
      channels.publishRevocation(keyId);
      return heard.includes(keyId);
    }, 'a revoked key is heard of');
    forget();
  };

  it('subscribe again if SUBSCRIBE is not answered, and the process continues', async () => {
    await hears('before');

    redis.subscribing = 'is not answered';
    redis.cut();
    const tried = redis.subscriptions;
    await eventually(() => redis.subscriptions >= tried + 3, 'it tries again and again');
    redis.subscribing = 'is answered';

    await hears('afterwards');
    expect(unhandled).to.deep.equal([]);
  });

  it('report after their return that messages may have been missed', async () => {
    const missed: boolean[] = [];
    channels.subscribeRevocations(
      () => undefined,
      () => {
        missed.push(channels.stands);
      },
    );
    expect([channels.stands, missed]).to.deep.equal([true, []]);

    redis.subscribing = 'is not answered';
    redis.cut();
    await eventually(() => !channels.stands, 'they know that they hear nothing');
    redis.subscribing = 'is answered';

    await eventually(() => missed.length > 0, 'it is said');
    expect(missed).to.deep.equal([true]);
  });

  it('subscribe again if the connection ends at each SUBSCRIBE, and the process continues', async () => {
    await hears('before');

    redis.subscribing = 'ends the connection';
    redis.cut();
    const tried = redis.subscriptions;
    await eventually(() => redis.subscriptions >= tried + 4, 'it tries again and again');
    redis.subscribing = 'is answered';

    await hears('afterwards');
    expect(unhandled).to.deep.equal([]);
  });
});
