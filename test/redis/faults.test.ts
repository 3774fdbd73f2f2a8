import { expect } from 'chai';
import type { Coordination } from '../../src/contracts/coordination.ts';
import { Refusal } from '../../src/model/refusals.ts';
import type { RedisCoordination } from '../../src/redis/coordination.ts';
import { RedisLink } from '../../src/redis/redis-link.ts';
import { aRedisCoordination, known } from '../support/harness/a-redis-coordination.ts';
import { eventually } from '../support/harness/eventually.ts';
import { ALICE } from '../support/builders/instance-orders.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { noRedis, startRedis, type RedisServer } from '../../local-cluster/redis-server.ts';
import { rejection } from '../support/harness/rejection.ts';
import { skipBecause } from '../support/harness/skip-because.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

const ID = '0190a000-0000-7000-8000-000000000001';
const MARK = { key: 'k'.repeat(22), body: 'b'.repeat(22) };
const OWNER = { tenant: ALICE, ttlMs: 60_000 };
const HOLDER = { sandbox: ID, tenant: ALICE };
const POOL = { uid: 'p1', owner: ALICE };
const END = { reason: 'deleted', exitCode: null } as const;

describe('a Redis that fails', function () {
  let redis: RedisServer;
  let replica: RedisCoordination;
  let coordination: Coordination;

  before(function () {
    if (noRedis !== undefined) skipBecause(this, noRedis);
  });
  beforeEach(async () => {
    redis = await startRedis();
    replica = await aRedisCoordination(redis.settings, { rebuildWaitMs: 0 });
    coordination = replica.coordination;
    await isKnown();
  });
  afterEach(async () => {
    await replica?.stop();
    await redis?.stop();
  });

  const reserve = (name: string, limit = 3) =>
    coordination.reserve(ALICE, 'sandboxes', { name, amount: 1, limit });
  const isKnown = () =>
    known(() => coordination.reserve(ALICE, 'sandboxes', { name: 'nothing', amount: 0, limit: 0 }));
  const answering = () =>
    eventually(() => coordination.describe().problems.length === 0, 'Redis answers');

  const calls = (): readonly Promise<unknown>[] => [
    reserve('a'),
    coordination.withdraw(ALICE, 'sandboxes', { name: 'a' }),
    coordination.release(ALICE, 'sandboxes', 'a'),
    coordination.joinWaiting(POOL),
    coordination.waiting(POOL),
    coordination.admitClaim({ pool: POOL, instance: 'b', limit: 3, idle: 1 }),
    coordination.stillReserved(ALICE, 'sandboxes', { name: 'a' }),
    coordination.unreconciled(ALICE, 'sandboxes', 0),
    coordination.reconcile(ALICE, 'sandboxes', [{ name: 'a', version: '1', amount: 1 }]),
    coordination.openRequest(MARK, OWNER),
    coordination.keepAnswer(MARK, OWNER, 'x'),
    coordination.issueToken('x', 1_000, HOLDER),
    coordination.peekToken('x'),
    coordination.redeemToken('x'),
    coordination.expire(ID, { idleTimeoutMs: 1, claimedAt: 0 }),
    coordination.markEnded(ID, END),
    coordination.ended(ID),
  ];

  it('when stopped ends every call with `unavailable`, while rate limits continue', async function () {
    redis.signal('SIGSTOP');
    const errors = await Promise.all(calls().map((call) => rejection(call)));
    const counted = await coordination.countWithin('address', 1, 60_000);
    redis.signal('SIGCONT');

    for (const error of errors)
      expect(error).to.be.instanceOf(Refusal).with.property('code', 'UNAVAILABLE');
    expect(counted).to.deep.equal({ within: true, retryAfterMs: 0 });
  });

  it('when stopped drops the calls that were waiting in it', async () => {
    redis.signal('SIGSTOP');
    const errors = [
      await rejection(reserve('late')),
      await rejection(coordination.openRequest(MARK, OWNER)),
    ];
    redis.signal('SIGCONT');
    await eventually(
      () =>
        reserve('probe').then(
          () => true,
          () => false,
        ),
      'it goes on',
    );

    for (const error of errors) expect(error).to.be.instanceOf(Refusal);
    expect(await coordination.stillReserved(ALICE, 'sandboxes', { name: 'late' })).to.equal(false);
    expect(await coordination.openRequest(MARK, OWNER)).to.include({ kind: 'new' });
    expect(await reserve('x', 2)).to.equal(true);
  });

  it('when stopped is reported, and accepts claims afterwards', async () => {
    redis.signal('SIGSTOP');
    await eventually(() => coordination.describe().problems.length > 0, 'a problem shows');
    expect(coordination.describe().problems).to.deep.equal(['Redis does not answer']);
    redis.signal('SIGCONT');
    await eventually(
      () =>
        reserve('x').then(
          () => true,
          () => false,
        ),
      'a claim is taken',
    );

    await answering();
  });

  it('when killed fails calls at once, and works after a restart', async () => {
    await redis.kill();
    await eventually(() => coordination.describe().problems.length > 0, 'a problem shows');
    for (const error of await Promise.all(calls().map((call) => rejection(call))))
      expect(error).to.have.property('code', 'UNAVAILABLE');

    await redis.restart();
    await answering();
    await isKnown();
    expect(await reserve('a')).to.equal(true);
  });

  it('when killed reports revocations again after its restart', async () => {
    const heard: string[] = [];
    const forget = coordination.subscribeRevocations((keyId) => {
      heard.push(keyId);
    });
    await redis.kill();
    coordination.publishRevocation('meanwhile');
    await redis.restart();
    await answering();

    await eventually(() => {
      coordination.publishRevocation('afterwards');
      return heard.includes('afterwards');
    }, 'it is heard');

    forget();
    expect(heard).to.not.include('meanwhile');
  });

  it('when killed keeps stored answers, and loses earlier ends', async () => {
    await coordination.openRequest(MARK, OWNER);
    await coordination.keepAnswer(MARK, OWNER, 'the answer');
    await coordination.markEnded(ID, END);
    await redis.kill();
    await redis.restart();
    await answering();

    expect(await coordination.openRequest(MARK, OWNER)).to.deep.equal({
      kind: 'answered',
      answer: 'the answer',
    });
    expect(await coordination.ended(ID)).to.deep.equal(END);
    expect(await rejection(coordination.ended('another'))).to.have.property('code', 'UNAVAILABLE');
  });

  it('when killed keeps the target of a request whose replica died too', async () => {
    await coordination.openRequest(MARK, OWNER);
    expect(await coordination.placeRequest(MARK, OWNER, 'west::p')).to.equal(true);
    await redis.kill();
    await redis.restart();
    await answering();
    expect(await coordination.openRequest(MARK, OWNER)).to.deep.equal({ kind: 'in-flight' });
    await coordination.giveUpRequest(MARK, OWNER);

    expect(await coordination.openRequest(MARK, OWNER)).to.include({
      kind: 'new',
      place: 'west::p',
    });
  });

  it('when flushed ends no sandbox as idle, and loses earlier ends', async () => {
    const since = Number(replica.time()) - 1_000;
    await redis.client.flushall();

    const expiry = await coordination.expire(ID, {
      idleTimeoutMs: 500,
      claimedAt: since - 3_600_000,
    });
    expect(expiry.expired).to.equal(false);
    expect(!expiry.expired && expiry.activeAt).to.be.above(since);
    expect(await rejection(coordination.ended(ID))).to.have.property('code', 'UNAVAILABLE');
  });

  it('when restarted ends no sandbox as idle for lost activity', async () => {
    const before = Number(replica.time());
    coordination.touch(ID, 60_000);
    await redis.kill();
    await redis.restart();
    await answering();

    const expiry = await coordination.expire(ID, { idleTimeoutMs: 60_000, claimedAt: 0 });
    expect(!expiry.expired && expiry.activeAt).to.be.above(before);
  });

  it('continues when its clock is set forward by an hour', async () => {
    const link = new RedisLink({
      metrics: silentMetrics,
      settings: redis.settings,
      name: 'test',
      log: quietLog,
    });
    try {
      await link.start();
      const now = Number(link.time.now());
      link.time.seen(now - 3_600_000, performance.now());

      expect(await link.run('begin_marks', ['marks'], [])).to.deep.equal(['ok']);
      expect(Number(link.time.now())).to.be.within(now - 1_000, now + 60_000);
    } finally {
      link.stop();
    }
  });

  it('is reported when it is missing at the start, and works once it is there', async () => {
    await redis.kill();
    const late = await aRedisCoordination(redis.settings, { replica: 'late', rebuildWaitMs: 0 });
    expect(late.coordination.describe().problems).to.deep.equal(['Redis does not answer']);
    expect(late.time()).to.equal(undefined);
    expect(await rejection(late.coordination.issueToken('x', 1_000, HOLDER))).to.have.property(
      'code',
      'UNAVAILABLE',
    );

    await redis.restart();
    await eventually(() => late.coordination.describe().problems.length === 0, 'it answers');
    expect(
      await late.coordination.redeemToken(await late.coordination.issueToken('x', 5_000, HOLDER)),
    ).to.equal('x');
    await late.stop();
  });
});

describe('the warnings about Redis', () => {
  before(function () {
    if (noRedis !== undefined) skipBecause(this, noRedis);
  });

  const warningsUnder = async (
    options: Parameters<typeof startRedis>[0],
  ): Promise<readonly string[]> => {
    const redis = await startRedis(options);
    const { coordination, stop } = await aRedisCoordination(redis.settings);
    const { warnings } = coordination.describe();
    await stop();
    await redis.stop();
    return warnings;
  };

  it('include a missing append-only file', async () => {
    expect(await warningsUnder({ forgetful: true })).to.deep.equal([
      'Redis has no append-only file (appendonly no): if it crashes, history and stored answers are lost',
    ]);
  });

  it('include a policy that may evict keys', async () => {
    expect(
      await warningsUnder({ config: ['maxmemory 100mb', 'maxmemory-policy allkeys-lru'] }),
    ).to.deep.equal(['Redis may evict stored data (maxmemory-policy allkeys-lru, not noeviction)']);
  });

  it('are empty if all is well', async () => {
    expect(await warningsUnder({})).to.deep.equal([]);
  });
});
