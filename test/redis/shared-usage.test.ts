import { expect } from 'chai';
import { RECONCILE_EVERY_MS } from '../../src/actors/sandbox/reservation-reconciler.ts';
import type { ClaimEntry } from '../../src/contracts/coordination/claims.ts';
import type { Coordination } from '../../src/contracts/coordination.ts';
import { OutcomeUnknown } from '../../src/contracts/sandbox-driver.ts';
import { Refusal } from '../../src/model/refusals.ts';
import type { RequestFingerprint } from '../../src/model/request-fingerprint.ts';
import { IdempotentRequest } from '../../src/actors/request/idempotent-request.ts';
import { servesWaitingClaims } from '../properties/waiting-claims.ts';
import { known, twoRedisCoordinations } from '../support/harness/a-redis-coordination.ts';
import { aPool } from '../support/builders/a-pool.ts';
import { alice } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { ALICE } from '../support/builders/instance-orders.ts';
import { advanceRedis } from '../support/harness/redis-clock.ts';
import { onRedis } from '../support/harness/on-redis.ts';
import { rejection } from '../support/harness/rejection.ts';
import { aReplica, sharedStores } from '../support/harness/shared-supervisors.ts';

const MARK: RequestFingerprint = { key: 'k'.repeat(22), body: 'b'.repeat(22) };
const OWNER = { tenant: ALICE, ttlMs: 60_000 };
const codeOf = (error: unknown): string => (error instanceof Refusal ? error.code : String(error));

/** Two replicas' actors over one truth and one Redis. */
describe('two replicas with shared usage', function () {
  const redis = onRedis();
  let one: Coordination;
  let other: Coordination;
  let stop: () => Promise<void>;

  beforeEach(async () => {
    ({ one, other, stop } = await twoRedisCoordinations(redis().settings, { rebuildWaitMs: 0 }));
  });
  afterEach(() => stop());

  const twoReplicas = async (replicas: number, sandboxLimit = 1_000) => {
    const stores = await sharedStores({ pool: { replicas } });
    for (const resource of ['sandboxes', 'pools', 'replicas'] as const)
      await known(() => one.reserve(ALICE, resource, { name: 'nothing', amount: 0, limit: 0 }));
    const [a, b] = [
      await aReplica(stores, one, { sandboxLimit }),
      await aReplica(stores, other, { sandboxLimit }),
    ];
    a.lead();
    await eventually(
      () =>
        [a, b].every(
          ({ supervisor }) => supervisor.pools.get(stores.pool.uid)?.counts.idle === replicas,
        ),
      'filled',
    );
    return { ...stores, a, b };
  };
  /** Half a minute goes by in Redis, and a round is gone. */
  const settle = async (clock: { advance(ms: number): void }): Promise<void> => {
    await advanceRedis([redis().client], 31_000);
    clock.advance(RECONCILE_EVERY_MS);
  };
  const isFree = async (limit: number): Promise<boolean> => {
    const free = await one.reserve(ALICE, 'sandboxes', { name: 'probe', amount: 1, limit });
    if (free) await one.release(ALICE, 'sandboxes', 'probe');
    return free;
  };
  /** As if the replica had died, which would say again that it lives. */
  const orphan = async (): Promise<void> => {
    const [key] = await redis().client.keys('*:request:*');
    await redis().client.hset(key ?? '', 'until', '1', 'owner', 'died');
  };

  it('release the quota of a claim if its replica died before the write, and no late write lands', async () => {
    const { a, clock, truth } = await twoReplicas(1);
    const [stored] = await truth.records.all();
    const record = stored?.record;
    if (!record) throw new Error('there is one');
    await other.reserve(ALICE, 'sandboxes', { name: record.id, amount: 1, limit: 1 });
    expect(await isFree(1)).to.equal(false);

    await settle(clock);
    await eventually(() => isFree(1), 'the seat is free');

    const late = { owner: ALICE, claimedAt: clock.now(), idleTimeoutMs: 0, maxLifetimeMs: 0 };
    expect(String(await rejection(truth.claim(record, late)))).to.include('RecordConflict');
    expect(await a.claim(alice, { poolName: 'default' })).to.have.property('id', record.id);
  });

  it('keep the quota of a claimed sandbox, even after its replica died', async () => {
    const { b, clock } = await twoReplicas(1);
    const { id } = await b.claim(alice, { poolName: 'default' });

    await settle(clock);
    await eventually(
      async () => (await one.unreconciled(ALICE, 'sandboxes', 0)).every(({ name }) => name !== id),
      'it is settled',
    );

    expect(await isFree(1)).to.equal(false);
    await other.withdraw(ALICE, 'sandboxes', { name: id });
    expect(await isFree(1)).to.equal(false);
  });

  it("count replicas by the pool's record if a change was left half done", async () => {
    const { pool, clock } = await twoReplicas(1);
    await other.reserve(ALICE, 'pools', { name: 'never-made', amount: 1, limit: 10 });
    await other.reserve(ALICE, 'replicas', { name: pool.uid, amount: 50, limit: 100 });
    expect(await one.reserve(ALICE, 'replicas', { name: 'x', amount: 60, limit: 100 })).to.equal(
      false,
    );

    await settle(clock);

    await eventually(
      async () =>
        (await one.unreconciled(ALICE, 'pools', 0)).length === 0 &&
        (await one.unreconciled(ALICE, 'replicas', 0)).length === 0,
      'both are settled',
    );
    expect(await one.reserve(ALICE, 'replicas', { name: 'x', amount: 99, limit: 100 })).to.equal(
      true,
    );
    expect(await one.reserve(ALICE, 'replicas', { name: 'y', amount: 1, limit: 100 })).to.equal(
      false,
    );
  });

  it('release the quota of a deleted pool whose release failed, by the next leader', async () => {
    const { b, pools, pool, clock } = await twoReplicas(3);
    await one.reconcile(ALICE, 'pools', [
      { name: pool.uid, version: '', amount: 1, revision: '1' },
      { name: 'kept', version: '', amount: 1 },
    ]);
    await one.reconcile(ALICE, 'replicas', [
      { name: pool.uid, version: '', amount: 3, revision: '1' },
    ]);
    const kept = await pools.create(aPool({ name: 'other', uid: 'kept', replicas: 0 }));
    await eventually(() => b.supervisor.pools.get(kept.uid) !== undefined, 'it is seen');
    await pools.remove(pool); // nobody tells
    b.lead();

    await eventually(async () => {
      clock.advance(RECONCILE_EVERY_MS);
      const { pools: count, replicas } = await one.used(ALICE);
      return count === 1 && replicas === 0;
    }, 'it is given back');
  });

  it('move the quota from a lost instance to another', async () => {
    const { a, b, pool } = await twoReplicas(2, 2);
    b.driver.lag(); // it does not see that the first one goes
    const { id } = await a.claim(alice, { poolName: 'default' });
    const second = await b.claim(alice, { poolName: 'default' });

    expect(second.id).to.not.equal(id);
    b.driver.catchUp();
    expect(b.supervisor.pools.get(pool.uid)?.counts.running).to.equal(2);
    expect(await isFree(3)).to.equal(true);
    expect(await isFree(2)).to.equal(false);
  });

  it('release the quota of an instance that was retired before its claim', async () => {
    const { b, truth } = await twoReplicas(1);
    const [stored] = await truth.records.all();
    const { id = '', revision = '' } = stored?.record ?? {};
    b.driver.lag();
    await truth.retire(id, revision);
    await eventually(
      async () => (await truth.records.all()).some(({ record }) => record.id !== id),
      'the leader launched another for it',
    );
    const claimed = await b.claim(alice, { poolName: 'default' });

    expect(claimed.id).to.not.equal(id);
    expect((await one.unreconciled(ALICE, 'sandboxes', 0)).map(({ name }) => name)).to.not.include(
      id,
    );
  });

  it('write no claim whose quota was lost in the meantime', async () => {
    const { a, b, truth, clock } = await twoReplicas(1);
    truth.failNext('claim', new OutcomeUnknown('cut'));
    truth.hold('read');
    const refused = rejection(a.claim(alice, { poolName: 'default' }));
    await eventually(() => truth.calls.some((call) => call.startsWith('claim')), 'it was sent');
    await redis().client.flushall();
    clock.advance(1_500);
    truth.letGo('read');
    await eventually(() => {
      clock.advance(100);
      return truth.calls.filter((call) => call.startsWith('read')).length > 2;
    }, 'it was looked at');
    clock.advance(5_000);

    expect(codeOf(await refused)).to.equal('UNAVAILABLE');
    expect(truth.calls.filter((call) => call.startsWith('claim'))).to.have.length(1);
    expect((await truth.records.all()).every(({ record }) => record.claim === undefined)).to.equal(
      true,
    );
    void b;
  });

  describe('take over the request of a dead replica', () => {
    const begun = async (replicas = 1) => {
      const world = await twoReplicas(replicas);
      expect((await one.openRequest(MARK, OWNER)).kind).to.equal('new');
      return world;
    };
    /** By a claim of the request that writes nothing. */
    const admitted = (pool: ClaimEntry['pool'], instance = '') =>
      one.admitClaim({ pool, instance, limit: 10, idle: 1, request: MARK, looked: true });
    const takenOver = async (): Promise<string | undefined> => {
      await orphan();
      const opened = await other.openRequest(MARK, OWNER);
      if (opened.kind !== 'new') throw new Error(opened.kind);
      return opened.instance;
    };

    it('and answer with its claim, even if the mirror does not show the sandbox', async () => {
      const { a, b } = await begun();
      b.driver.lag();
      const { id } = await a.claim(alice, { poolName: 'default', mark: MARK });

      const instance = await takenOver();
      expect(instance).to.equal(id);
      expect((await b.found(alice, MARK, instance))?.id).to.equal(id);
      expect(
        codeOf(await rejection(b.found(alice, { ...MARK, body: 'other' }, instance))),
      ).to.equal('IDEMPOTENCY_KEY_REUSED');
    });

    it('and continue if it had not written, and its late write never lands', async () => {
      const { b, truth, clock, pool } = await begun();
      const [stored] = await truth.records.all();
      const record = stored?.record;
      if (!record) throw new Error('there is one');
      await admitted(pool, record.id);

      const instance = await takenOver();
      expect(await b.found(alice, MARK, instance)).to.equal(undefined);
      const late = {
        owner: ALICE,
        claimedAt: clock.now(),
        idleTimeoutMs: 0,
        maxLifetimeMs: 0,
        mark: MARK,
      };
      expect(String(await rejection(truth.claim(record, late)))).to.include('RecordConflict');
      await eventually(
        () => b.supervisor.sandbox(record.id)?.context.record?.revision !== record.revision,
        'it is seen',
      );
      expect((await b.claim(alice, { poolName: 'default', mark: MARK })).id).to.equal(record.id);
    });

    it('and answer with its claim, even after a flush of Redis and without a mirror', async () => {
      const { a, b, pool, truth } = await begun(2);
      b.driver.lag();
      const { id } = await a.claim(alice, { poolName: 'default', mark: MARK });
      // it is to try for the other one
      expect(b.supervisor.idle.acquire(pool.uid)?.id).to.equal(id);
      await redis().client.flushall();
      await known(() => other.used(ALICE));
      const found = await b.claim(alice, {
        poolName: 'default',
        opening: new IdempotentRequest(other, MARK, { owner: OWNER }),
      });

      expect(found.id).to.equal(id);
      expect((await truth.records.all()).filter(({ record }) => record.claim)).to.have.length(1);
    });

    for (const [how, request] of [
      ['refused', { poolName: 'unknown' }],
      ['made to wait', { poolName: 'default', waitMs: 1_000 }],
    ] as const) {
      it(`and answer with its claim after a flush, even if the request is ${how} before any admission`, async () => {
        const { a, b, truth } = await begun(1);
        b.driver.lag();
        const { id } = await a.claim(alice, { poolName: 'default', mark: MARK });
        await redis().client.flushall();
        await known(() => other.used(ALICE));
        const opening = new IdempotentRequest(other, MARK, { owner: OWNER });

        expect(await b.claim(alice, { ...request, opening })).to.have.property('id', id);
        expect((await truth.records.all()).filter(({ record }) => record.claim)).to.have.length(1);
      });
    }

    it('and continue if nothing was claimed before the flush', async () => {
      const { b, truth } = await begun(2);
      await redis().client.flushall();
      await known(() => other.used(ALICE));
      const opening = new IdempotentRequest(other, MARK, { owner: OWNER });
      await b.claim(alice, { poolName: 'default', opening });

      expect(opening.foundEarlier).to.equal(false);
      expect((await truth.records.all()).filter(({ record }) => record.claim)).to.have.length(1);
    });

    it('by a claim that opens the request, and gets the claimed sandbox', async () => {
      const { a, b, truth } = await begun(2);
      b.driver.lag();
      const { id } = await a.claim(alice, { poolName: 'default', mark: MARK });
      await orphan();
      const opening = new IdempotentRequest(other, MARK, { owner: OWNER });
      const found = await b.claim(alice, { poolName: 'default', opening });

      expect([found.id, opening.foundEarlier]).to.deep.equal([id, true]);
      expect((await truth.records.all()).filter(({ record }) => record.claim)).to.have.length(1);
    });

    it('by a claim that opens the request, and continues without a claimed sandbox', async () => {
      const { b, truth, pool } = await begun(1);
      const [stored] = await truth.records.all();
      await admitted(pool, stored?.record.id);
      await orphan();
      const opening = new IdempotentRequest(other, MARK, { owner: OWNER });
      const claimed = await b.claim(alice, { poolName: 'default', opening });

      expect([claimed.id, opening.foundEarlier]).to.deep.equal([stored?.record.id, false]);
    });

    it('and keep it in flight until the outcome is known', async () => {
      const { b, truth, clock, pool } = await begun();
      const [stored] = await truth.records.all();
      await admitted(pool, stored?.record.id);
      const instance = await takenOver();
      truth.failNext('bump', new OutcomeUnknown('cut'));

      expect(codeOf(await rejection(b.found(alice, MARK, instance)))).to.equal('UNAVAILABLE');
      expect(codeOf(await rejection(b.found(alice, MARK, instance)))).to.equal(
        'IDEMPOTENCY_IN_FLIGHT',
      );
      const settled = b.pendingRequests.settled(MARK);
      clock.advance(1_000);
      await settled;

      expect(await b.found(alice, MARK, instance)).to.equal(undefined);
    });
  });

  it('serve their waiting claims in order, once each, and none waits while an instance is idle', async function () {
    await servesWaitingClaims(async () => {
      const { a, b, pool, clock } = await twoReplicas(0);
      return {
        claims: [a.claim, b.claim],
        coordination: one,
        pool,
        clock,
        grow: async (replicas) => {
          await a.supervisor.pools.change(pool.uid, (record) => ({ ...record, replicas }));
        },
        idle: () => [a, b].map(({ supervisor }) => supervisor.index.idleIn(pool.uid)),
      };
    }, 10);
  });

  it('report how a sandbox ended for a minute after its record is closed', async () => {
    const { a, b, truth, clock } = await twoReplicas(1);
    const { id } = await a.claim(alice, { poolName: 'default' });
    truth.end(id, 3);
    await eventually(() => a.supervisor.sandbox(id) === undefined, 'it is closed');

    expect(await b.coordination.ended(id)).to.deep.equal({ reason: 'exited', exitCode: 3 });
    expect(clock.now()).to.be.above(0);
  });
});
