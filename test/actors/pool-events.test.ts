import { expect } from 'chai';
import { STEADY_MS } from '../../src/machines/sandbox/arithmetic.ts';
import { eventMessageOf, eventTypeOf } from '../../src/model/event.ts';
import { CLOSED_BREAKER, type PoolRecord } from '../../src/model/pools/pool.ts';
import { Refusal } from '../../src/model/refusals.ts';
import type { Caller } from '../../src/model/tenant.ts';
import { poolEvents } from '../../src/actors/pool/commands/pool-events.ts';
import { aPool } from '../support/builders/a-pool.ts';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { FakeSandboxDriver } from '../support/fakes/fake-sandbox-driver.ts';
import { rejection } from '../support/harness/rejection.ts';

const bob: Caller = { ...alice, user: 'bob', keyId: 'k2' };
const root: Caller = { ...alice, user: 'root', role: 'admin', keyId: 'k3' };

const world = async (options: Parameters<typeof aSupervisor>[0] = {}) => {
  const made = await aSupervisor({ pool: { replicas: 0 }, ...options });
  const read = poolEvents(made);
  const reasons = async (name = 'shells', caller = alice): Promise<readonly string[]> =>
    (await read(caller, name)).map(({ reason }) => reason);
  const create = async (part: Partial<PoolRecord> = {}): Promise<PoolRecord> => {
    const at = made.clock.now();
    return await made.pools.create(aPool({ name: 'shells', replicas: 1, createdAt: at, ...part }));
  };
  const change = async (uid: string, part: Partial<PoolRecord>): Promise<void> => {
    await made.supervisor.pools.change(uid, (record) => ({ ...record, ...part }));
  };
  const idle = (uid: string, count: number) =>
    eventually(() => made.supervisor.pools.get(uid)?.counts.idle === count, `${count} idle`);
  return { ...made, read, reasons, create, change, idle };
};

describe('the events of a pool', () => {
  it('are listed from creation to deletion, even after the deletion', async () => {
    const { create, change, idle, read, reasons, supervisor } = await world();
    const { uid } = await create();
    await idle(uid, 1);
    await change(uid, { replicas: 3 });
    await idle(uid, 3);
    await change(uid, { replicas: 0 });
    await eventually(() => supervisor.pools.get(uid)?.counts.stopping === 0, 'it is empty');
    await change(uid, { deleting: 'keep-running' });
    await eventually(() => supervisor.pools.get(uid) === undefined, 'it is gone');

    const events = await read(alice, 'shells');
    expect(events.map((event) => eventMessageOf(event))).to.deep.equal([
      'pool shells was created',
      'pool shells has all its 1 instances',
      'pool shells was resized from 1 to 3 instances',
      'pool shells has all its 3 instances',
      'pool shells was resized from 3 to 0 instances',
      'pool shells has no unclaimed instances left',
      'pool shells is being deleted, and its running sandboxes continue',
      'pool shells was deleted',
    ]);
    expect(await reasons('shells', root)).to.have.length(8);
  });

  it('report each cause of failing starts once, and the recovery', async () => {
    const driver = new FakeSandboxDriver({ startsByItself: false });
    const { create, clock, read, supervisor } = await world({
      driver,
      policy: { breaker: { failures: 1, firstPauseMs: 5_000, maxPauseMs: 5_000 } },
    });
    const { uid } = await create();
    for (let failure = 0; failure < 3; failure += 1) {
      await eventually(() => driver.running().length === 1, 'one starts');
      driver.end(driver.running()[0] ?? '', 127, 'command not found: x');
      await eventually(() => supervisor.pools.startTrouble(uid)?.until !== undefined, 'it pauses');
      clock.advance(5_001);
    }
    await eventually(() => driver.running().length === 1, 'one starts again');
    driver.becomeAvailable(driver.running()[0] ?? '');
    await eventually(() => supervisor.pools.get(uid)?.counts.idle === 1, 'it has started');
    clock.advance(STEADY_MS);
    await eventually(() => supervisor.pools.startTrouble(uid) === undefined, 'it is well');

    const events = await read(alice, 'shells');
    expect(events.map((event) => [event.reason, eventTypeOf(event)])).to.deep.equal([
      ['Created', 'Normal'],
      ['StartFailed', 'Warning'],
      ['BackOff', 'Warning'],
      ['Recovered', 'Normal'],
      ['Filled', 'Normal'],
    ]);
    expect(events[1]).to.include({ why: 'command not found: x' });
  });

  it('report a changed definition, and the end of its rollout', async () => {
    const { create, change, idle, read, reasons, supervisor, clock } = await world();
    const { uid } = await create({ replicas: 2 });
    await idle(uid, 2);
    clock.advance(STEADY_MS);
    await change(uid, { updateRevision: 'r2', templateVersion: '2' });
    await eventually(() => supervisor.pools.get(uid)?.updated.idle === 2, 'all are renewed');
    await eventually(() => supervisor.pools.get(uid)?.phase === 'Ready', 'it is rolled out');

    expect(await reasons()).to.deep.equal(['Created', 'Filled', 'Changed', 'RolledOut']);
    expect(eventMessageOf((await read(alice, 'shells'))[2]!)).to.equal(
      'pool shells has a new definition, of version 2 of its template',
    );
  });

  it('contain no claims and no autoscaling decisions', async () => {
    const { create, change, idle, reasons, claim } = await world();
    const { uid } = await create();
    await idle(uid, 1);
    await claim(alice, { poolName: 'shells' });
    await change(uid, { replicas: 3, decided: { id: 7 } });
    await idle(uid, 2);

    expect(await reasons()).to.deep.equal(['Created', 'Filled']);
  });

  it('include the creation of an older pool, and repeat nothing after a restart', async () => {
    const { create, reasons, read, supervisor, pool } = await world({ pool: { replicas: 1 } });
    await create({ replicas: 0 });
    expect(await reasons()).to.deep.equal(['Created']);
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'one is idle');

    expect(await reasons('default')).to.deep.equal(['Created']);
    expect((await read(alice, 'default'))[0]?.at).to.equal(pool.createdAt);
  });

  it('are visible to callers that may claim, and after deletion to owner and admins', async () => {
    const { create, change, read, supervisor } = await world();
    const codeOf = async (caller: Caller): Promise<string | undefined> => {
      const error = await rejection(read(caller, 'shells'));
      return error instanceof Refusal ? error.code : undefined;
    };
    expect(await codeOf(alice)).to.equal('POOL_NOT_FOUND');
    const { uid } = await create();
    expect(await codeOf(bob)).to.equal('POOL_NOT_FOUND');
    await change(uid, { access: 'team' });
    expect(await read(bob, 'shells')).to.not.be.empty;
    await change(uid, { deleting: 'keep-running' });
    await eventually(() => supervisor.pools.get(uid) === undefined, 'it is gone');
    expect(await codeOf(bob)).to.equal('POOL_NOT_FOUND');
    expect((await read(root, 'shells')).at(-1)?.reason).to.equal('Deleted');

    await create({ owner: { namespace: bob.namespace, team: bob.team, user: bob.user } });
    const ofBob = await read(bob, 'shells');
    expect(new Set(ofBob.map(({ owner }) => owner.user))).to.deep.equal(new Set(['bob']));
  });

  it('hide the events of an earlier pool with the same name from sharers', async () => {
    const { create, change, clock, reasons, supervisor } = await world();
    const { uid } = await create({ replicas: 0 });
    await change(uid, { deleting: 'keep-running' });
    await eventually(() => supervisor.pools.get(uid) === undefined, 'it is gone');
    clock.advance(1_000);
    await create({ uid: 'another', replicas: 0, access: 'team' });

    expect(await reasons('shells', bob)).to.deep.equal(['Created']);
    expect(await reasons('shells', alice)).to.deep.equal([
      'Created',
      'Deleting',
      'Deleted',
      'Created',
    ]);
  });

  it('are published only by the leader', async () => {
    const { create, change, events, supervisor } = await world();
    const told: string[] = [];
    const { uid } = await create({ replicas: 0, breaker: CLOSED_BREAKER });
    const controller = new AbortController();
    const over = (async () => {
      for await (const { events: some } of events.follow(undefined, undefined, controller.signal))
        told.push(...some.map(({ event }) => event.reason));
    })();
    for (let shard = 0; shard < 64; shard += 1) supervisor.pools.actors.follow(shard);
    await change(uid, { labels: { a: 'b' }, replicas: 2 });
    controller.abort();
    await over;
    expect(told).to.deep.equal([]);
  });
});
