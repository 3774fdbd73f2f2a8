import { expect } from 'chai';
import type { Coordination } from '../../src/contracts/coordination.ts';
import type { EventBatch, EventRecord } from '../../src/model/event.ts';
import { REMEMBERED_EVENTS } from '../../src/model/event-ring.ts';
import type { Tenant } from '../../src/model/tenant.ts';
import {
  aRedisCoordination,
  known,
  twoRedisCoordinations,
} from '../support/harness/a-redis-coordination.ts';
import { alice } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { ALICE } from '../support/builders/instance-orders.ts';
import { onRedis } from '../support/harness/on-redis.ts';
import { aReplica, sharedStores } from '../support/harness/shared-supervisors.ts';

const listening = (
  at: Pick<Coordination, 'followEvents'>,
  owner: Tenant | undefined = ALICE,
  after?: string,
) => {
  const controller = new AbortController();
  const batches: EventBatch[] = [];
  const over = (async () => {
    for await (const batch of at.followEvents(owner, after, controller.signal)) batches.push(batch);
  })();
  const heard = () => batches.flatMap(({ events }) => events);
  return {
    heard,
    batches,
    over,
    resets: () => batches.filter(({ missed }) => missed).length,
    names: () => heard().map(({ event }) => event.sandboxId),
    reasons: () => heard().map(({ event }) => event.reason),
    stop: async () => {
      controller.abort();
      await over;
    },
  };
};

const anEvent = (sandboxId: string): EventRecord => ({
  at: 1,
  owner: ALICE,
  poolName: 'default',
  sandboxId,
  reason: 'Claimed',
});

describe('events in Redis', function () {
  const redis = onRedis();
  let one: Coordination;
  let other: Coordination;
  let stop: () => Promise<void>;

  beforeEach(async () => {
    ({ one, other, stop } = await twoRedisCoordinations(redis().settings, { rebuildWaitMs: 0 }));
  });
  afterEach(() => stop());

  const told = (at: Coordination, name: string, key = name): Promise<number> =>
    new Promise((resolve) => {
      at.publishEvent(anEvent(name), key, resolve);
    });

  it('have the same numbers on each replica, so that clients can switch replicas', async () => {
    const [here, there] = [listening(one), listening(other)];
    for (const name of ['a', 'b', 'c']) await told(name === 'b' ? other : one, name);
    await eventually(
      () => here.heard().length === 3 && there.heard().length === 3,
      'both have all',
    );
    expect(there.heard()).to.deep.equal(here.heard());
    await here.stop();
    await told(one, 'd');
    const again = listening(other, ALICE, String(here.heard().at(-1)?.id));
    await eventually(() => again.heard().length === 1, 'what was missed');
    await Promise.all([again.stop(), there.stop()]);

    expect([again.names(), again.resets()]).to.deep.equal([['d'], 0]);
  });

  it('reported several times with one key are stored once, under one number', async () => {
    const ears = listening(one);
    const ids = await Promise.all([told(one, 'a'), told(other, 'a'), told(other, 'a')]);
    await told(one, 'b');
    await eventually(() => ears.names().includes('b'), 'they are heard');
    await ears.stop();

    expect(ears.names()).to.deep.equal(['a', 'b']);
    expect(new Set(ids).size).to.equal(1);
  });

  it('are bounded, and a reader behind them all is informed once', async () => {
    const first = await told(one, 'first');
    const last = Promise.all(
      Array.from({ length: REMEMBERED_EVENTS }, (_, n) => told(one, `n${n}`)),
    );
    await last;
    expect(await redis().client.xlen('sandpool:{events}:stream')).to.equal(REMEMBERED_EVENTS);
    const late = await aRedisCoordination(redis().settings, { replica: 'late' });
    const [behind, at] = [
      listening(late.coordination, ALICE, String(first - 1)),
      listening(late.coordination, ALICE, String(first)),
    ];
    await eventually(
      () => behind.heard().length === REMEMBERED_EVENTS && at.heard().length === REMEMBERED_EVENTS,
      'all that are left',
    );
    await Promise.all([behind.stop(), at.stop()]);
    await late.stop();

    expect([behind.resets(), at.resets()]).to.deep.equal([1, 0]);
    expect(await redis().client.zcard('sandpool:{events}:seen')).to.be.at.most(
      2 * REMEMBERED_EVENTS,
    );
  });

  it('are reported as missed once to every reader after a flush, and continue', async () => {
    const [here, there] = [listening(one), listening(other)];
    const before = await told(one, 'a');
    await eventually(() => here.heard().length === 1 && there.heard().length === 1, 'both have it');

    await redis().client.flushall();
    await eventually(() => here.resets() === 1 && there.resets() === 1, 'both are told');
    await told(other, 'b');
    await eventually(() => here.names().includes('b') && there.names().includes('b'), 'both go on');
    const late = listening(one, ALICE, String(before));
    await eventually(() => late.names().includes('b'), 'who comes again goes on');
    await Promise.all([here, there, late].map((each) => each.stop()));

    expect([here, there, late].map((each) => each.resets())).to.deep.equal([1, 1, 1]);
    expect(there.heard()).to.deep.equal(here.heard());
  });

  it('wait while Redis is unavailable, with open and silent streams', async () => {
    const open = listening(one);
    await told(one, 'a');
    await eventually(() => open.heard().length === 1, 'it is heard');

    redis().signal('SIGSTOP');
    const opened = listening(one);
    let ended = false;
    void open.over.finally(() => {
      ended = true;
    });
    const waiting = told(one, 'b');
    await eventually(() => one.describe().problems.length > 0, 'it is away');
    expect([open.heard().length, opened.batches.length, ended]).to.deep.equal([1, 0, false]);
    redis().signal('SIGCONT');

    await waiting;
    await eventually(
      () => open.names().includes('b') && opened.names().includes('b'),
      'both go on',
    );
    await Promise.all([open.stop(), opened.stop()]);
    expect([open.resets(), opened.resets(), opened.names()]).to.deep.equal([0, 0, ['b']]);
  });

  describe('on two replicas with one store', () => {
    const twoReplicas = async () => {
      const stores = await sharedStores({ pool: { replicas: 1 } });
      await known(() => one.reserve(ALICE, 'sandboxes', { name: 'nothing', amount: 0, limit: 0 }));
      const [leader, follower] = [await aReplica(stores, one), await aReplica(stores, other)];
      const ears = [listening(leader.coordination), listening(follower.coordination)] as const;
      return { ...stores, leader, follower, ears };
    };

    it('are each published and stored once, whichever replica gets the request', async () => {
      const { leader, follower, ears, pool, clock, history } = await twoReplicas();
      leader.lead();
      await eventually(
        () => follower.supervisor.pools.get(pool.uid)?.counts.idle === 1,
        'one is idle',
      );
      const { id } = await follower.claim(alice, { poolName: 'default' });
      follower.supervisor.send(id, { type: 'END', reason: 'deleted', now: clock.now() });
      const own = (at: 0 | 1) => ears[at].heard().filter(({ event }) => event.sandboxId === id);
      for (const at of [0, 1] as const)
        await eventually(
          () => own(at).some(({ event }) => event.reason === 'Completed'),
          'it has ended',
        );
      await eventually(
        () => own(0).length === own(1).length && ears[0].heard().length >= 7,
        'all is told',
      );
      await Promise.all(ears.map((each) => each.stop()));
      await Promise.all([leader.events.flush(), follower.events.flush()]);

      const reasons = own(0).map(({ event }) => event.reason);
      expect(reasons.toSorted()).to.deep.equal([
        'Claimed',
        'Completed',
        'Created',
        'Killing',
        'Started',
      ]);
      expect(own(1)).to.deep.equal(own(0));
      expect(own(0).find(({ event }) => event.reason === 'Completed')?.event).to.deep.include({
        end: { reason: 'deleted', exitCode: null },
      });
      expect(
        history.events
          .filter(({ event }) => event.sandboxId === id)
          .map(({ event }) => event.reason),
      ).to.deep.equal(['Killing']);
    });

    it('are published by the next leader if the last one failed to', async () => {
      const { leader, follower, ears, truth, pool } = await twoReplicas();
      leader.lead();
      await eventually(
        () => follower.supervisor.pools.get(pool.uid)?.counts.idle === 1,
        'one is idle',
      );
      const [id = ''] = truth.running();
      await eventually(() => ears[1].reasons().includes('Started'), 'it is told');

      leader.die();
      truth.end(id, 7);
      await truth.settled();
      expect(ears[1].reasons()).to.not.include('Completed');
      follower.lead();

      await eventually(
        () =>
          ears.every((each) =>
            each
              .heard()
              .some(({ event }) => event.reason === 'Completed' && event.sandboxId === id),
          ),
        'both hear',
      );
      await Promise.all(ears.map((each) => each.stop()));
      expect(
        ears[1]
          .heard()
          .filter(({ event }) => event.sandboxId === id)
          .map(({ event }) => event.reason),
      ).to.deep.equal(['Created', 'Started', 'Completed']);
    });
  });
});
