import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { rendezvous } from '../../src/lib/rendezvous.ts';
import { SHARDS } from '../../src/model/shards.ts';
import type { RedisCoordination } from '../../src/redis/coordination.ts';
import { aRedisCoordination } from '../support/harness/a-redis-coordination.ts';
import { eventually } from '../support/harness/eventually.ts';
import { onRedis } from '../support/harness/on-redis.ts';

const ALL = Array.from({ length: SHARDS }, (_, shard) => shard);

describe('leases in Redis', function () {
  const redis = onRedis();
  let parts: Replica[] = [];
  const processes: ChildProcess[] = [];

  afterEach(async () => {
    await Promise.all(parts.map((replica) => replica.stop()));
    parts = [];
    for (const child of processes.splice(0)) child.kill('SIGKILL');
  });

  const join = async (name: string): Promise<Replica> => {
    const replica = new Replica(await aRedisCoordination(redis().settings, { replica: name }));
    parts.push(replica);
    return replica;
  };
  const joinAsProcess = async (name: string): Promise<ChildProcess> => {
    const child = fork(
      fileURLToPath(new URL('replica-process.ts', import.meta.url)),
      [name, JSON.stringify(redis().settings)],
      { execArgv: ['--import', import.meta.resolve('tsx')] },
    );
    processes.push(child);
    await once(child, 'message');
    return child;
  };
  const led = (replicas: readonly Replica[]): readonly number[] =>
    replicas.flatMap((replica) => replica.shards()).toSorted((a, b) => a - b);
  const all = (replicas: readonly Replica[], what: string) =>
    eventually(() => led(replicas).join() === ALL.join(), what);

  it('go to the replicas in shares, handed over in order', async () => {
    const a = await join('a');
    await all([a], 'the only one has all');

    const b = await join('b');
    await eventually(
      () => b.shards().length > 0 && led([a, b]).join() === ALL.join(),
      'both have a share',
    );

    expect(a.coordination.replicas()).to.deep.equal(['a', 'b']);
    expect(b.shards()).to.deep.equal(
      ALL.filter((shard) => rendezvous(`shard-${shard}`, ['a', 'b']) === 'b'),
    );
    expect(a.told.filter(({ kind }) => kind === 'gone')).to.deep.equal([]);
    expect(
      a.told
        .filter(({ kind }) => kind === 'wanted-elsewhere')
        .map(({ shard }) => shard)
        .toSorted((x, y) => x - y),
    ).to.deep.equal(b.shards());
    expectRisingEpochs([a, b]);
  });

  it('are held until they are released, even if another replica should have them', async () => {
    const a = await join('a');
    await all([a], 'the only one has all');
    a.keeps = true;
    const b = await join('b');
    await eventually(() => a.told.some(({ kind }) => kind === 'wanted-elsewhere'), 'a is told');
    const wanted = a.told
      .filter(({ kind }) => kind === 'wanted-elsewhere')
      .map(({ shard }) => shard);

    expect(b.shards()).to.deep.equal([]);
    expect(wanted.every((shard) => a.coordination.lease(shard)?.held())).to.equal(true);
    await Promise.all(wanted.map((shard) => a.coordination.giveUp(shard)));

    expect(wanted.some((shard) => a.coordination.lease(shard))).to.equal(false);
    await eventually(() => b.shards().length === wanted.length, 'b has them');
  });

  it('move at once when a replica leaves in order', async () => {
    const [a, b] = [await join('a'), await join('b')];
    await eventually(
      () => a.shards().length > 0 && b.shards().length > 0 && led([a, b]).length === SHARDS,
      'both have a share',
    );

    a.coordination.leave();
    await all([b], 'b has all');

    expect(a.told.filter(({ kind }) => kind === 'gone')).to.deep.equal([]);
    expectRisingEpochs([a, b]);
  });

  it('go back to a replica that left and returns', async () => {
    const a = await join('a');
    await all([a], 'the only one has all');
    a.coordination.leave();
    await Promise.all(a.shards().map((shard) => a.coordination.giveUp(shard)));
    expect(a.shards()).to.deep.equal([]);

    a.coordination.join();

    await all([a], 'it has all again');
    expectRisingEpochs([a]);
  });

  it('move when a replica is killed', async () => {
    const child = await joinAsProcess('killed');
    const b = await join('b');
    await eventually(
      () => b.shards().length > 0 && b.coordination.replicas().length === 2,
      'both have a share',
    );
    expect(b.shards().length).to.be.below(SHARDS);

    child.kill('SIGKILL');
    await all([b], 'b has all');
  });

  it('are lost by a replica after a long pause, and its share returns to it', async () => {
    const child = await joinAsProcess('stopped');
    const told: { readonly kind: string; readonly shard: number; readonly epoch: number }[] = [];
    child.on('message', (message) => {
      told.push(message as (typeof told)[number]);
    });
    const b = await join('b');
    const mine = ALL.filter((shard) => rendezvous(`shard-${shard}`, ['b', 'stopped']) === 'b');
    await eventually(() => b.shards().join() === mine.join(), 'both have their share');

    child.kill('SIGSTOP');
    await all([b], 'b has all');
    told.length = 0;
    child.kill('SIGCONT');
    await eventually(
      () =>
        new Set(told.filter(({ kind }) => kind === 'gained').map(({ shard }) => shard)).size ===
        SHARDS - mine.length,
      'it has its share again',
    );

    for (const shard of new Set(told.map((one) => one.shard)))
      expect(
        told.find((one) => one.shard === shard)?.kind,
        `what is heard of shard ${shard} first`,
      ).to.equal('gone');
    for (const { shard, epoch } of told.filter(({ kind }) => kind === 'gained'))
      expect(epoch).to.be.above(b.epochs.get(shard) ?? Infinity);
  });

  it('expire by the monotonic clock during an outage, and get a higher epoch afterwards', async () => {
    const a = await join('a');
    await all([a], 'the only one has all');
    const before = new Map(ALL.map((shard) => [shard, a.coordination.lease(shard)]));

    redis().signal('SIGSTOP');
    try {
      await eventually(
        () => ALL.every((shard) => before.get(shard)?.held() === false),
        'none is held',
      );
    } finally {
      redis().signal('SIGCONT');
    }
    await all([a], 'it has all again');

    for (const [shard, lease] of before) {
      expect(lease?.held()).to.equal(false);
      expect(a.coordination.lease(shard)?.epoch).to.be.above(lease?.epoch ?? Infinity);
    }
  });

  it('continue with higher epochs after a flush', async () => {
    const a = await join('a');
    await all([a], 'the only one has all');
    const before = new Map(
      ALL.map((shard) => [shard, a.coordination.lease(shard)?.epoch ?? Infinity]),
    );

    await redis().client.flushall();
    await eventually(
      () =>
        ALL.every((shard) => (a.coordination.lease(shard)?.epoch ?? 0) > (before.get(shard) ?? 0)),
      'all are won anew',
    );
  });

  it('have a holder after an outage during which another replica came back', async () => {
    const a = await join('a');
    await all([a], 'the only one has all');

    redis().signal('SIGSTOP');
    const before = ALL.map((shard) => a.coordination.lease(shard));
    await eventually(() => before.every((lease) => lease?.held() === false), 'none is held');
    const b = await join('b');
    redis().signal('SIGCONT');

    await all([a, b], 'every shard is led by somebody');
    await eventually(() => b.shards().length > 0, 'the one that came back has its share');
    await all([a, b], 'every shard is led by somebody, still');
  });

  it('have a holder after a stall of Redis during a handover', async () => {
    const a = await join('a');
    await all([a], 'the only one has all');
    let stalled: Promise<unknown> | undefined;
    a.beforeGivingUp = () => {
      stalled ??= redis().client.call('CLIENT', 'PAUSE', '1200', 'ALL');
    };
    const b = await join('b');

    await eventually(() => stalled !== undefined, 'a hand-over begins');
    await stalled;
    await eventually(
      () => b.shards().length > 0 && led([a, b]).join() === ALL.join(),
      'every shard is led by somebody',
    );
  });

  it('have a holder after a failover to a Redis without the last writes', async () => {
    const [a, b] = [await join('a'), await join('b')];
    await eventually(
      () => a.shards().length > 0 && b.shards().length > 0 && led([a, b]).length === SHARDS,
      'both have a share',
    );
    const { client } = redis();
    const lost = a.shards();
    const keys = await client.keys('*');
    const copy = await Promise.all(
      keys.map(async (key) => ({ key, dump: await client.dumpBuffer(key) })),
    );

    await a.stop();
    await all([b], 'b has all');
    const c = await join('c');
    await eventually(
      () => c.shards().length > 0 && led([b, c]).length === SHARDS,
      'both have a share',
    );
    const before = [b, c].flatMap((replica) =>
      lost.map((shard) => replica.coordination.lease(shard)),
    );
    const setBack = client.multi().flushall();
    // locks of the dead one too, without an end
    for (const { key, dump } of copy) if (dump) setBack.restore(key, 0, dump);
    for (const [error] of (await setBack.exec()) ?? []) if (error) throw error;

    await eventually(
      () => before.every((lease) => lease?.held() !== true),
      'what the copy lacks is held no more',
    );
    await all([b, c], 'every shard is led by somebody');
  });

  const expectRisingEpochs = (replicas: readonly Replica[]): void => {
    for (const shard of ALL) {
      const epochs = replicas.flatMap(({ told }) =>
        told
          .filter((one) => one.kind === 'gained' && one.shard === shard)
          .map(({ epoch }) => epoch),
      );
      expect(new Set(epochs).size).to.equal(epochs.length);
    }
  };
});

/** What one replica was told, giving up what is wanted elsewhere. */
class Replica {
  readonly coordination: RedisCoordination['coordination'];
  readonly told: { readonly kind: string; readonly shard: number; readonly epoch: number }[] = [];
  readonly epochs = new Map<number, number>();
  keeps = false;
  beforeGivingUp: () => void = () => undefined;
  readonly stop: () => Promise<void>;

  constructor({ coordination, stop }: RedisCoordination) {
    this.coordination = coordination;
    this.stop = stop;
    coordination.follow({
      gained: (shard) => {
        const epoch = coordination.lease(shard)?.epoch ?? 0;
        this.epochs.set(shard, epoch);
        this.told.push({ kind: 'gained', shard, epoch });
      },
      lost: (shard, kind) => {
        this.told.push({ kind, shard, epoch: this.epochs.get(shard) ?? 0 });
        if (kind !== 'wanted-elsewhere' || this.keeps) return;
        this.beforeGivingUp();
        void coordination.giveUp(shard);
      },
    });
  }

  shards(): readonly number[] {
    return ALL.filter((shard) => this.coordination.lease(shard) !== undefined);
  }
}
