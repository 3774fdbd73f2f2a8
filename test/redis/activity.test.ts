import { expect } from 'chai';
import { setTimeout as pause } from 'node:timers/promises';
import { twoRedisCoordinations } from '../support/harness/a-redis-coordination.ts';
import { eventually } from '../support/harness/eventually.ts';
import { onRedis } from '../support/harness/on-redis.ts';
import { advanceRedis } from '../support/harness/redis-clock.ts';

const ID = '0190a000-0000-7000-8000-000000000001';

describe('a sandbox with an idle timeout of a few seconds', () => {
  const redis = onRedis();
  /** Less than the five seconds of which one mark is told where timeouts are long. */
  const of = { idleTimeoutMs: 4_500, claimedAt: 0 };

  /** The replica that leads, another one, and marks that have been whole for an hour. */
  const twoReplicas = async () => {
    const { one: leader, other, stop } = await twoRedisCoordinations(redis().settings);
    const advance = (ms: number) => advanceRedis([redis().client], ms);
    await advance(3_600_000);
    /** What the leader is told. */
    const activeAt = async (terms = of): Promise<number | 'expired'> => {
      const expiry = await leader.expire(ID, terms);
      return expiry.expired ? 'expired' : expiry.activeAt;
    };
    return { leader, other, stop, advance, activeAt };
  };

  it('does not end while another replica runs a command in it, however long that takes', async () => {
    const { other, stop, advance, activeAt } = await twoReplicas();
    expect(await activeAt()).to.equal('expired');
    other.work(ID, true);
    await eventually(async () => (await activeAt()) !== 'expired', 'the work counts');
    for (let minute = 0; minute < 5; minute++) {
      await advance(5_000);
      expect(await activeAt()).not.to.equal('expired');
      await advance(39_000);
      const told = await redis().client.keys('*:working:*');
      expect(told).to.have.lengthOf(1);
      const before = await redis().client.pttl(told[0]!); // it has one
      await eventually(
        async () => (await redis().client.pttl(told[0]!)) > before,
        'it is told again',
      );
    }
    other.work(ID, false);
    await eventually(
      async () => (await redis().client.keys('*:working:*')).length === 0,
      'it is over',
    );
    expect(await activeAt()).not.to.equal('expired');
    await advance(of.idleTimeoutMs);

    expect(await activeAt()).to.equal('expired');
    await stop();
  });

  it('does not end during a command on a stopping replica, and ends after it', async () => {
    const { other, stop, advance, activeAt } = await twoReplicas();
    other.work(ID, true);
    await eventually(async () => (await activeAt()) !== 'expired', 'the work counts');
    await stop();

    expect(await redis().client.keys('*:working:*')).to.deep.equal([]);
    await advance(0);
  });

  it('does not end if its activity was lost before it is reported again', async () => {
    const { other, stop, advance, activeAt } = await twoReplicas();
    other.work(ID, true);
    await eventually(async () => (await activeAt()) !== 'expired', 'the work counts');
    await redis().client.flushall();
    const brief = { ...of, idleTimeoutMs: 200 }; // long over before work is told again at last
    expect(await activeAt(brief)).not.to.equal('expired'); // marks begin anew
    await redis().client.del(...(await redis().client.keys('*:working:*')), 'none');
    await advance(300);

    expect(await activeAt(brief)).not.to.equal('expired');
    await stop();
  });

  it('does not end while another replica uses it repeatedly', async function () {
    const { other, stop, activeAt } = await twoReplicas();
    const seen = new Set<number | 'expired'>();
    other.touch(ID, of.idleTimeoutMs);
    await eventually(async () => (await activeAt()) !== 'expired', 'its use counts');
    while (seen.size < 4 && !seen.has('expired')) {
      other.touch(ID, of.idleTimeoutMs);
      seen.add(await activeAt());
      await pause(20);
    }

    expect([...seen]).not.to.include('expired');
    await stop();
  });
});
