import { expect } from 'chai';
import { HistoryRoom } from '../../src/redis/history-room.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn++)
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
};

/** A room whose Redis is as full as the test says; `looks` counts how often that was asked. */
const aRoom = async () => {
  const clock = new TestClock();
  const redis = { used: 0, forgotten: 0, looks: 0 };
  const room = new HistoryRoom({
    metrics: silentMetrics,
    clock,
    log: quietLog,
    makeRoom: async () => {
      redis.looks += 1;
      return redis;
    },
  });
  room.start();
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms);
    await settled();
  };
  await pass(0);
  return { clock, redis, room, pass };
};

describe('the memory that history leaves to other data', () => {
  it('is checked every five seconds, and sooner after many records', async () => {
    const { redis, room, pass } = await aRoom();
    const first = redis.looks;
    for (let n = 0; n < 199; n++) room.recorded();
    await pass(0);
    const few = redis.looks;
    room.recorded();
    await pass(0);
    const many = redis.looks;
    await pass(5_000);

    expect([few, many, redis.looks].map((looks) => looks - first)).to.deep.equal([0, 1, 2]);
    await room.stop();
  });

  it('is freed until there is enough, with a warning for an hour', async () => {
    const { redis, room, pass } = await aRoom();
    Object.assign(redis, { used: 0.68, forgotten: 100 });
    await pass(5_000);
    await pass(20);
    await pass(20);
    Object.assign(redis, { used: 0.64, forgotten: 0 });
    await pass(20);

    expect(room.warnings().join()).to.include(
      '300 finished sandboxes were deleted before history.retention',
    );
    await pass(3_600_000);
    expect(room.warnings()).to.deep.equal([]);
    await room.stop();
  });

  it('cannot be freed if history does not fill Redis, which is reported', async () => {
    const { redis, room, pass } = await aRoom();
    redis.used = 0.9;
    await pass(5_000);

    expect(room.warnings().join()).to.include('Redis is 90 % full, and not because of history');
    await room.stop();
  });
});
