import { expect } from 'chai';
import {
  EventFeed,
  HELD_MS,
  WRITE_DELAY_MS,
  type Noted,
} from '../../src/actors/runtime/event-feed.ts';
import type { History } from '../../src/contracts/history.ts';
import { Deferred } from '../../src/lib/deferred.ts';
import {
  eventMessageOf,
  eventTypeOf,
  type EventBatch,
  type EventRecord,
  type NumberedEvent,
} from '../../src/model/event.ts';
import { REMEMBERED_EVENTS } from '../../src/model/event-ring.ts';
import type { Tenant } from '../../src/model/tenant.ts';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { aReplica, sharedStores } from '../support/harness/shared-supervisors.ts';
import { eventually } from '../support/harness/eventually.ts';
import { aCoordination } from '../support/fakes/a-coordination.ts';
import { FakeSandboxDriver } from '../support/fakes/fake-sandbox-driver.ts';
import { aDefinition, ALICE } from '../support/builders/instance-orders.ts';
import { MemoryHistory } from '../support/fakes/memory-records.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

const BOB: Tenant = { namespace: 'beta', team: 'beta', user: 'bob' };

/** Everything that is told from now on. */
const listening = (feed: EventFeed, owner?: Tenant, after?: string) => {
  const controller = new AbortController();
  const heard: NumberedEvent[] = [];
  const batches: EventBatch[] = [];
  const over = (async () => {
    for await (const batch of feed.follow(owner, after, controller.signal)) {
      batches.push(batch);
      heard.push(...batch.events);
    }
  })();
  return {
    heard,
    batches,
    reasons: () => heard.map(({ event }) => event.reason),
    stop: async () => {
      controller.abort();
      await over;
    },
  };
};

describe('the events of a sandbox', () => {
  it('cover its life from creation to completion, each with its time', async () => {
    const { supervisor, driver, events, claim, clock } = await aSupervisor({
      pool: { replicas: 0 },
    });
    const ears = listening(events, ALICE);
    const uid = supervisor.pools.index.uidOf(alice.namespace, 'default') ?? '';
    await supervisor.pools.change(uid, (record) => ({ ...record, replicas: 1 }));
    await eventually(() => supervisor.pools.get(uid)?.counts.idle === 1, 'one is idle');
    const { id } = await claim(alice, { poolName: 'default' });
    supervisor.send(id, { type: 'END', reason: 'deleted', now: clock.now() });
    await eventually(() => ears.reasons().includes('Completed'), 'it is completed');
    await ears.stop();

    const own = ears.heard.filter(({ event }) => event.sandboxId === id).map(({ event }) => event);
    expect(own.map(({ reason }) => reason)).to.deep.equal([
      'Created',
      'Started',
      'Claimed',
      'Killing',
      'Completed',
    ]);
    expect(
      own.every(({ owner, poolName }) => owner.user === 'alice' && poolName === 'default'),
    ).to.equal(true);
    expect(own.at(-1)).to.deep.include({ end: { reason: 'deleted', exitCode: null } });
    await driver.settled();
  });

  it('report that an idle sandbox becomes unusable, and usable again', async () => {
    const { supervisor, driver, events, pool } = await aSupervisor({ pool: { replicas: 1 } });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'one is idle');
    const ears = listening(events, ALICE);
    const [id = ''] = driver.running();

    driver.becomeUnavailable(id, 'HTTP 500');
    driver.becomeAvailable(id);
    await eventually(() => ears.heard.length === 2, 'both are told');
    await ears.stop();

    expect(ears.reasons()).to.deep.equal(['Unhealthy', 'Ready']);
    expect(ears.heard[0]?.event).to.include({ why: 'HTTP 500' });
  });

  it('only warn the owner of a claimed sandbox that its node will be drained', async () => {
    const { supervisor, driver, events, claim, pool } = await aSupervisor({
      pool: { replicas: 1 },
    });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'one is idle');
    const { id } = await claim(alice, { poolName: 'default' });
    const ears = listening(events, ALICE);

    driver.becomeUnavailable(id, 'its node is cordoned', { nodeLeaving: true });
    await eventually(() => ears.heard.some(({ event }) => event.sandboxId === id), 'it is told');
    await ears.stop();

    const own = ears.heard.flatMap(({ event }) => (event.sandboxId === id ? [event] : []));
    expect(own.map(({ reason }) => reason)).to.deep.equal(['NodeLeaving']);
    expect(own[0]).to.include({ why: 'its node is cordoned' });
  });

  it('give the reason of an end, without blaming a sandbox that ended by itself', async () => {
    const { supervisor, driver, events, claim, pool } = await aSupervisor({
      pool: { replicas: 1 },
    });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'one is idle');
    const { id } = await claim(alice, { poolName: 'default' });
    const ears = listening(events, ALICE);

    driver.end(id, 137, 'OOMKilled', { outOfMemory: true });
    await eventually(() => ears.reasons().includes('Completed'), 'its end is told');
    await ears.stop();

    const own = ears.heard.map(({ event }) => event).filter(({ sandboxId }) => sandboxId === id);
    expect(own.map(({ reason }) => reason)).to.deep.equal(['Completed']);
    expect(own[0]).to.deep.include({ end: { reason: 'oom-killed', exitCode: 137 } });
    expect(own[0] && [eventTypeOf(own[0]), eventMessageOf(own[0])]).to.deep.equal([
      'Warning',
      'it has ended: its main process needed more memory than its limit',
    ]);
  });

  it('report once that a secondary container has ended while the sandbox goes on', async () => {
    const { supervisor, driver, events, claim, pool } = await aSupervisor({
      pool: { replicas: 1 },
    });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'one is idle');
    const { id } = await claim(alice, { poolName: 'default' });
    const ears = listening(events, ALICE);

    driver.loseContainer(id, 'agent', 'exit code 1');
    driver.loseContainer(id, 'agent', 'exit code 1');
    await eventually(() => ears.heard.length > 0, 'it is told');
    await driver.settled();
    await ears.stop();

    expect(ears.heard.map(({ event }) => eventMessageOf(event))).to.deep.equal([
      'its container "agent" has ended: exit code 1',
    ]);
    expect(supervisor.sandbox(id)?.status).to.equal('Running');
  });

  it('record each time that its processes ended with their supervisor', async () => {
    const { supervisor, events, claim, pool, clock } = await aSupervisor({ pool: { replicas: 1 } });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'one is idle');
    const { id } = await claim(alice, { poolName: 'default' });
    const ears = listening(events, ALICE);
    const { context } = supervisor.sandbox(id) ?? {};
    const { record, startedAt = 0 } = context ?? {};
    const fact = {
      ...{ id, record, vitals: { kind: 'available', startedAt } as const },
      programsEnded: 'the process that ran them was killed',
    };

    supervisor.send(id, { type: 'FACT', fact, now: clock.now() });
    supervisor.send(id, { type: 'FACT', fact, now: clock.now() });
    await eventually(() => ears.heard.length === 2, 'it is told twice');
    await ears.stop();

    const words = 'the processes in it have ended: the process that ran them was killed';
    expect(ears.heard.map(({ event }) => eventMessageOf(event))).to.deep.equal([words, words]);
    expect((await events.eventsOf(id)).map(({ reason }) => reason)).to.deep.equal([
      'ProgramsEnded',
      'ProgramsEnded',
    ]);
    expect(supervisor.sandbox(id)?.status).to.equal('Running');
  });

  it('report ended processes even before the daemon leads', async () => {
    const stores = await sharedStores({ pool: { replicas: 1 } });
    const { supervisor, events, claim, lead, die } = await aReplica(
      stores,
      aCoordination(stores.clock),
    );
    lead();
    await eventually(() => supervisor.pools.get(stores.pool.uid)?.counts.idle === 1, 'one is idle');
    const { id } = await claim(alice, { poolName: stores.pool.name });
    die();
    const { record, startedAt = 0 } = supervisor.sandbox(id)?.context ?? {};
    supervisor.send(id, {
      type: 'FACT',
      fact: {
        ...{ id, record, vitals: { kind: 'available', startedAt } as const },
        programsEnded: 'the process that ran them was killed',
      },
      now: stores.clock.now(),
    });
    expect((await events.eventsOf(id)).map(({ reason }) => reason)).to.include('ProgramsEnded');
  });

  it('report why it did not start, and that its pool backs off', async () => {
    const driver = new FakeSandboxDriver({ startsByItself: false });
    const { supervisor, events, pool } = await aSupervisor({
      driver,
      pool: { replicas: 1 },
      policy: { breaker: { failures: 1, firstPauseMs: 5_000, maxPauseMs: 5_000 } },
    });
    const ears = listening(events, ALICE);
    await eventually(() => driver.running().length === 1, 'one starts');

    driver.end(driver.running()[0] ?? '', 127, 'command not found: x');
    await eventually(
      () => supervisor.pools.get(pool.uid)?.phase !== 'Ready' && ears.reasons().includes('BackOff'),
      'it backs off',
    );
    await ears.stop();

    expect(ears.heard.find(({ event }) => event.reason === 'Failed')?.event).to.include({
      why: 'command not found: x',
    });
    expect(ears.heard.find(({ event }) => event.reason === 'BackOff')?.event).to.include({
      why: 'command not found: x',
      poolName: 'default',
    });
  });

  it('preserve facts about claimed sandboxes that neither record nor history has', async () => {
    const { supervisor, events, claim, clock, history, pool } = await aSupervisor({
      pool: { replicas: 1, definition: aDefinition({}, { idleTimeoutMs: 60_000 }) },
    });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'one is idle');
    const { id } = await claim(alice, { poolName: 'default' });
    const record = supervisor.sandbox(id)?.context.record;
    if (!record?.claim) throw new Error('it is not claimed');
    supervisor.send(id, {
      type: 'AMENDED',
      record: { ...record, claim: { ...record.claim, idleTimeoutMs: 5_000 } },
      now: clock.now(),
    });
    supervisor.send(id, { type: 'END', reason: 'deleted', now: clock.now() });
    await eventually(() => history.finished.length === 1, 'it is finished');

    expect((await events.eventsOf(id)).map(({ reason }) => reason)).to.deep.equal([
      'IdleTimeoutChanged',
      'Killing',
    ]);
    expect(history.finished[0]?.createdAt).to.be.a('number');
  });
});

describe('the event feed', () => {
  const aFeed = () => {
    const clock = new TestClock();
    const history = new MemoryHistory();
    return { clock, history, feed: feedOf(clock, history) };
  };
  const feedOf = (
    clock: TestClock,
    history: Pick<History, 'recordEvents' | 'eventsOf' | 'eventsOfPool'>,
  ) => new EventFeed({ clock, log: quietLog, history, coordination: aCoordination(clock) });
  const OURS: Noted = { key: 'x', shard: 1, ours: true, kept: false };
  const KEPT: Noted = { ...OURS, kept: true };
  const anEvent = (clock: TestClock, part: Partial<EventRecord> = {}): EventRecord =>
    ({
      at: clock.now(),
      owner: ALICE,
      poolName: 'default',
      sandboxId: 'one',
      reason: 'Claimed',
      ...part,
    }) as EventRecord;

  it('shows each tenant its own events and admins all, in order', async () => {
    const { feed, clock } = aFeed();
    const [own, all] = [listening(feed, ALICE), listening(feed)];
    feed.note(anEvent(clock), OURS);
    feed.note(anEvent(clock, { owner: BOB }), OURS);
    feed.note(anEvent(clock, { at: clock.now() - 5_000 }), OURS);
    await eventually(() => all.heard.length === 3 && own.heard.length === 2, 'all are told');
    await Promise.all([own.stop(), all.stop()]);

    const ids = all.heard.map(({ id }) => id);
    expect(ids).to.deep.equal([...ids].toSorted((a, b) => a - b));
    expect(new Set(ids).size).to.equal(3);
    expect(own.heard.every(({ event }) => event.owner.user === 'alice')).to.equal(true);
  });

  it('resumes after an event number, without a gap', async () => {
    const { feed, clock } = aFeed();
    const first = listening(feed, ALICE);
    for (let n = 0; n < 5; n += 1) feed.note(anEvent(clock), OURS);
    await eventually(() => first.heard.length === 5, 'five are told');
    await first.stop();
    const again = listening(feed, ALICE, String(first.heard[1]?.id));
    await eventually(() => again.heard.length === 3, 'the last three are told');
    await again.stop();
    expect(again.heard).to.deep.equal(first.heard.slice(2));
    expect(again.batches.some(({ missed }) => missed)).to.equal(false);
  });

  it('reports missed events once, and continues', async () => {
    const { feed, clock } = aFeed();
    for (const after of ['0', 'x', '-1', '9007199254740993', String(clock.now() * 1_000 - 1)]) {
      const ears = listening(feed, ALICE, after);
      await eventually(() => ears.batches.length === 1, 'it is said');
      feed.note(anEvent(clock), OURS);
      await eventually(() => ears.heard.length >= 1, 'the next is told');
      await ears.stop();
      expect(ears.batches.map(({ missed }) => missed).filter(Boolean), after).to.have.lengthOf(1);
    }
  });

  it('keeps a bounded number, and tells slow readers that events were missed', async () => {
    const { feed, clock } = aFeed();
    const following = feed.follow(ALICE, undefined, new AbortController().signal);
    expect((await following.next()).value?.begins).to.be.a('number');
    for (let n = 0; n <= REMEMBERED_EVENTS; n += 1) feed.note(anEvent(clock), OURS);
    const { value } = await following.next();
    expect(value?.missed).to.equal(true);
    expect(value?.events).to.have.lengthOf(REMEMBERED_EVENTS);
  });

  it('continues its numbers after a restart', () => {
    const clock = new TestClock();
    const history = new MemoryHistory();
    const last = (feed: EventFeed): Promise<IteratorResult<EventBatch, void>> =>
      feed.follow(undefined, '0', new AbortController().signal).next();
    const before = feedOf(clock, history);
    before.note(anEvent(clock), OURS);
    clock.advance(10);
    const after = feedOf(clock, history);
    after.note(anEvent(clock), OURS);
    return Promise.all([last(before), last(after)]).then(([one, other]) => {
      expect(one.value?.events[0]?.id).to.be.below(other.value?.events[0]?.id ?? 0);
    });
  });

  it('writes stored events in batches, but at once if somebody reads', async () => {
    const { feed, clock, history } = aFeed();
    feed.note(anEvent(clock, { reason: 'Started' }), OURS);
    feed.note(anEvent(clock), KEPT);
    expect(history.events).to.have.lengthOf(0);
    clock.advance(WRITE_DELAY_MS);
    await eventually(() => history.events.length === 1, 'it is written');
    feed.note(anEvent(clock), KEPT);
    expect(await feed.eventsOf('one')).to.have.lengthOf(2);
  });

  it('continues if events cannot be stored', async () => {
    const { clock } = aFeed();
    const history = {
      recordEvents: () => Promise.reject(new Error('away')),
      eventsOf: async () => [],
      eventsOfPool: async () => [],
    };
    const feed = feedOf(clock, history);
    feed.note(anEvent(clock), KEPT);
    await feed.flush();
    expect(await feed.eventsOf('one')).to.deep.equal([]);
  });

  it("leaves events to the leader, and reports the leader's unsent ones when it takes over", async () => {
    const { feed, clock } = aFeed();
    const ears = listening(feed);
    const theirs = (part: Partial<Noted>): Noted => ({ ...OURS, ours: false, ...part });
    feed.note(anEvent(clock, { sandboxId: 'old' }), theirs({ key: 'old' }));
    clock.advance(HELD_MS + 1);
    feed.note(anEvent(clock, { sandboxId: 'held' }), theirs({ key: 'held' }));
    feed.note(anEvent(clock, { sandboxId: 'elsewhere' }), theirs({ key: 'elsewhere', shard: 2 }));
    feed.note(anEvent(clock, { sandboxId: 'only seen' }), theirs({ key: undefined }));
    feed.note(anEvent(clock, { sandboxId: 'ours' }), OURS);

    feed.lead(1);
    feed.lead(1);
    await eventually(() => ears.heard.length === 2, 'two are told');
    await ears.stop();

    expect(ears.heard.map(({ event }) => event.sandboxId)).to.deep.equal(['ours', 'held']);
  });

  it('keeps only the newest events', async () => {
    const { feed, clock } = aFeed();
    for (let n = 0; n < 20_000; n += 1)
      feed.note(anEvent(clock, { sandboxId: `s${n}` }), { ...OURS, key: `s${n}`, ours: false });
    const ears = listening(feed);
    feed.lead(1);
    await eventually(() => ears.heard.length > 0, 'they are told');
    await ears.stop();

    expect(ears.heard).to.have.length.within(2_048, 4_096);
    expect(ears.heard.at(-1)?.event.sandboxId).to.equal('s19999');
  });

  it('gives the reason of an end by another replica that looks like a loss', async () => {
    const clock = new TestClock();
    const coordination = aCoordination(clock);
    const feed = new EventFeed({
      clock,
      log: quietLog,
      history: new MemoryHistory(),
      coordination,
    });
    await coordination.markEnded('one', { reason: 'deleted', exitCode: null });
    const ears = listening(feed);
    feed.note(
      anEvent(clock, { reason: 'Completed', end: { reason: 'lost', exitCode: null } }),
      OURS,
    );
    await eventually(() => ears.heard.length === 1, 'it is told');
    await ears.stop();

    expect(ears.heard[0]?.event).to.deep.include({ end: { reason: 'deleted', exitCode: null } });
  });

  it('writes events that arrive just after its stop', async () => {
    const clock = new TestClock();
    const history = new MemoryHistory();
    const told: (() => void)[] = [];
    const coordination = {
      ...aCoordination(clock),
      publishEvent: (_event: EventRecord, _key: string, tell?: (id: number) => void) => {
        const id = told.length + 1;
        told.push(() => tell?.(id));
      },
    };
    const feed = new EventFeed({ clock, log: quietLog, history, coordination });
    feed.note(anEvent(clock), KEPT);
    feed.note(anEvent(clock, { sandboxId: 'two' }), KEPT);
    const stopped = feed.stop();
    await new Promise((next) => setImmediate(next));
    for (const tell of told) tell();
    await stopped;

    expect(await history.eventsOf('one')).to.have.length(1);
    expect(await history.eventsOf('two')).to.have.length(1);
  });

  it('writes a presumed loss if it stops before the others answer why', async () => {
    const clock = new TestClock();
    const history = new MemoryHistory();
    const why = new Deferred<undefined>();
    const coordination = { ...aCoordination(clock), ended: () => why.promise };
    const feed = new EventFeed({ clock, log: quietLog, history, coordination });
    feed.note(
      anEvent(clock, { reason: 'Completed', end: { reason: 'lost', exitCode: null } }),
      KEPT,
    );
    const stopped = feed.stop();
    await new Promise((next) => setImmediate(next));
    why.resolve(undefined);
    await stopped;

    expect(await history.eventsOf('one')).to.have.length(1);
  });

  it('stops even if nothing was published and nothing can be written', async () => {
    const clock = new TestClock();
    const coordination = { ...aCoordination(clock), publishEvent: () => undefined };
    let asked = 0;
    const history = Object.assign(new MemoryHistory(), {
      recordEvents: () => {
        asked += 1;
        return new Promise<void>(() => undefined);
      },
    });
    const silent = new EventFeed({ clock, log: quietLog, history, coordination });
    silent.note(anEvent(clock), KEPT);
    const feed = feedOf(clock, history);
    feed.note(anEvent(clock), KEPT);
    let over = 0;
    for (const each of [silent, feed])
      void each.stop().then(() => {
        over += 1;
      });
    await eventually(() => asked === 1, 'it is being written');
    clock.advance(500);
    await eventually(() => over === 1, 'the one of which nothing is told has stopped');
    clock.advance(1_000);
    await eventually(() => over === 2, 'so has the other');
  });
});
