import { expect } from 'chai';
import { NO_INSTANCES } from '../../src/model/pools/pool.ts';
import { Refusal } from '../../src/model/refusals.ts';
import { OutcomeUnknown, RecordConflict } from '../../src/contracts/sandbox-driver.ts';
import { RETRY_MS, STEADY_MS } from '../../src/machines/sandbox/arithmetic.ts';
import { deleteSandbox } from '../../src/actors/sandbox/commands/delete-sandbox.ts';
import type { InstanceFact } from '../../src/model/sandbox.ts';
import { aPool } from '../support/builders/a-pool.ts';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { FakeSandboxDriver } from '../support/fakes/fake-sandbox-driver.ts';
import { aDefinition } from '../support/builders/instance-orders.ts';

const refusalOf = async (work: Promise<unknown>): Promise<Refusal> => {
  try {
    await work;
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
  throw new Error('was not refused');
};

/** What could happen by now has happened. */
const turnsOfTheLoop = async (): Promise<void> => {
  for (let turns = 0; turns < 100; turns += 1) await new Promise(setImmediate);
};

describe('the supervisor', () => {
  it('fills a pool exactly to its replicas', async () => {
    const { supervisor, pool, driver } = await aSupervisor({ pool: { replicas: 5 } });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 5, 'five idle');
    expect(supervisor.pools.get(pool.uid)?.phase).to.equal('Ready');
    expect(driver.calls.filter((call) => call.startsWith('launch'))).to.have.length(5);
  });

  it('gives each of many simultaneous claims its own sandbox, and refuses the rest', async () => {
    const { supervisor, pool, claim } = await aSupervisor({ pool: { replicas: 20 } });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 20, 'filled');
    const answers = await Promise.allSettled(
      Array.from({ length: 30 }, () => claim(alice, { poolName: 'default' })),
    );
    const ids = answers.flatMap((answer) =>
      answer.status === 'fulfilled' ? [answer.value.id] : [],
    );
    expect(new Set(ids).size).to.equal(20);
    const refused = answers.flatMap((answer) =>
      answer.status === 'rejected' ? [answer.reason] : [],
    );
    expect(
      refused.every((reason) => reason instanceof Refusal && reason.code === 'POOL_EXHAUSTED'),
    ).to.equal(true);
    expect(supervisor.pools.get(pool.uid)?.counts.running).to.equal(20);
  });

  it('starts a new instance once a sandbox has ended', async () => {
    const { supervisor, pool, claim, clock } = await aSupervisor({ pool: { replicas: 1 } });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'filled');
    const first = await claim(alice, { poolName: 'default' });
    expect(supervisor.pools.get(pool.uid)?.counts.idle).to.equal(0);
    supervisor.send(first.id, { type: 'END', reason: 'deleted', now: clock.now() });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'another idle');
    const second = await claim(alice, { poolName: 'default' });
    expect(second.id).to.not.equal(first.id);
  });

  it('writes the history of a claimed sandbox and returns its seat when it ends', async () => {
    const { supervisor, pool, claim, clock, history } = await aSupervisor({
      pool: { replicas: 2 },
      sandboxLimit: 1,
    });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 2, 'filled');
    const first = await claim(alice, { poolName: 'default' });
    expect((await refusalOf(claim(alice, { poolName: 'default' }))).code).to.equal(
      'QUOTA_EXCEEDED',
    );
    supervisor.send(first.id, { type: 'END', reason: 'deleted', now: clock.now() });
    await eventually(() => supervisor.sandbox(first.id) === undefined, 'closed');
    expect(history.finished.map(({ id, endReason }) => [id, endReason])).to.deep.equal([
      [first.id, 'deleted'],
    ]);
    await claim(alice, { poolName: 'default' });
  });

  it("tries the next instance if the first one's record has changed", async () => {
    const { supervisor, pool, claim, driver } = await aSupervisor({ pool: { replicas: 2 } });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 2, 'filled');
    driver.failNext('claim', new RecordConflict());
    const view = await claim(alice, { poolName: 'default' });
    expect(view.status).to.equal('Running');
  });

  it('answers 503 if it cannot tell whether an instance is idle', async () => {
    const { claim, driver } = await aSupervisor({ pool: { replicas: 0 } });
    driver.idle = () => Promise.reject(new Error('the API server refuses'));
    expect((await refusalOf(claim(alice, { poolName: 'default' })))?.code).to.equal('UNAVAILABLE');
  });

  it('does not revive a sandbox that ended during a slow list', async () => {
    const { supervisor, pool, claim, driver, clock } = await aSupervisor({ pool: { replicas: 1 } });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'filled');
    const { id } = await claim(alice, { poolName: 'default' });
    const running = await driver.read(id);
    let answer: () => void = () => undefined;
    driver.idle = () =>
      new Promise((resolve) => {
        answer = () => {
          resolve([running]);
        };
      });
    const looked = supervisor.idle.look(pool.uid, pool.owner.namespace);

    supervisor.send(id, { type: 'END', reason: 'deleted', now: clock.now() });
    await eventually(() => supervisor.sandbox(id) === undefined, 'closed');
    answer();
    await looked;

    expect(running.record?.claim).to.have.property('owner');
    expect(supervisor.sandbox(id)).to.equal(undefined);
    expect(supervisor.pools.get(pool.uid)?.counts.running).to.equal(0);
  });

  it('repeats a claim with an unknown outcome on the same record', async () => {
    const { supervisor, pool, claim, driver } = await aSupervisor({ pool: { replicas: 1 } });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'filled');
    driver.failNext('claim', new OutcomeUnknown());
    const view = await claim(alice, { poolName: 'default' });
    expect(driver.calls.filter((call) => call === `claim ${view.id}`)).to.have.length(2);
  });

  it('answers 503 when a claim cannot be settled in time, and settles it afterwards', async () => {
    const { supervisor, pool, claim, driver, clock } = await aSupervisor({ pool: { replicas: 1 } });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'filled');
    driver.hold('claim');
    const refused = refusalOf(claim(alice, { poolName: 'default' }));
    await eventually(() => driver.calls.some((call) => call.startsWith('claim')), 'claim sent');
    clock.advance(5_001);
    expect((await refused).code).to.equal('UNAVAILABLE');
    driver.letGo('claim');
    await eventually(() => {
      const { idle = 0, running = 0 } = supervisor.pools.get(pool.uid)?.counts ?? {};
      return idle + running === 1;
    }, 'settled');
  });

  it("refuses as exhausted only once another claim's instance is claimed or gone", async () => {
    const { supervisor, pool, claim, driver, clock } = await aSupervisor({ pool: { replicas: 1 } });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'filled');
    driver.startsByItself = false;
    driver.hold('claim');
    driver.hold('retire');
    const first = refusalOf(claim(alice, { poolName: 'default' }));
    await eventually(() => driver.calls.some((call) => call.startsWith('claim')), 'claim sent');
    clock.advance(4_000);
    let refusal: string | undefined;
    void refusalOf(claim(alice, { poolName: 'default' })).then(({ code }) => {
      refusal = code;
    });
    clock.advance(1_001);
    expect((await first).code).to.equal('UNAVAILABLE');
    await eventually(
      () => driver.calls.some((call) => call.startsWith('retire')),
      'it is being retired',
    );
    await turnsOfTheLoop();
    expect(refusal).to.equal(undefined);
    driver.letGo('retire');
    await eventually(() => refusal === 'POOL_EXHAUSTED', 'it is refused');
  });

  it('replaces an instance that starts too slowly only after it is gone', async () => {
    const { supervisor, pool, driver, clock } = await aSupervisor({
      pool: { replicas: 1 },
      driver: new FakeSandboxDriver({ startsByItself: false }),
    });
    await eventually(() => driver.running().length === 1, 'it starts');
    driver.hold('retire');
    clock.advance(aDefinition().startupTimeoutMs + 1);
    await eventually(
      () => driver.calls.some((call) => call.startsWith('retire')),
      'it is being retired',
    );
    expect(supervisor.pools.get(pool.uid)?.counts).to.deep.include({ starting: 0, retiring: 1 });
    driver.letGo('retire');
    await eventually(
      () => driver.calls.filter((call) => call.startsWith('launch')).length === 2,
      'another one starts',
    );
  });

  it('acknowledges a deletion once other replicas can see it', async () => {
    const { supervisor, pool, claim, coordination, clock, driver } = await aSupervisor({
      pool: { replicas: 1 },
    });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'filled');
    const { id } = await claim(alice, { poolName: 'default' });
    let marked = (): void => undefined;
    coordination.markEnded = () =>
      new Promise((resolve) => {
        marked = resolve;
      });
    let acknowledged = false;
    void deleteSandbox({ supervisor, clock })(alice, id).then(() => {
      acknowledged = true;
    });
    await eventually(() => driver.calls.includes(`release ${id}`), 'it is being released');
    clock.advance(400);
    await turnsOfTheLoop();
    expect(acknowledged).to.equal(false);
    marked();
    await eventually(() => acknowledged, 'it is acknowledged');
  });

  it("acknowledges a deletion without a mark once the other replicas' watches show it", async () => {
    const { supervisor, pool, claim, coordination, clock, driver } = await aSupervisor({
      pool: { replicas: 1 },
    });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'filled');
    const { id } = await claim(alice, { poolName: 'default' });
    coordination.markEnded = async () => {
      throw new Error('Redis is away, for this replica alone');
    };
    driver.hold('release');
    let acknowledged = false;
    void deleteSandbox({ supervisor, clock })(alice, id).then(() => {
      acknowledged = true;
    });
    await eventually(() => driver.calls.includes(`release ${id}`), 'it is being released');
    clock.advance(400); // what the write takes tells the others nothing
    driver.letGo('release');
    await turnsOfTheLoop();
    clock.advance(400);
    await turnsOfTheLoop();
    expect(acknowledged).to.equal(false);
    clock.advance(100);
    await eventually(() => acknowledged, 'it is acknowledged');
  });

  it('acknowledges the deletion of an idle instance only after its record is deleted', async () => {
    const { supervisor, pool, driver, clock } = await aSupervisor({ pool: { replicas: 1 } });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'filled');
    const [id = ''] = supervisor.ids();
    driver.failNext('retire', new OutcomeUnknown('no answer'));
    let acknowledged = false;
    void deleteSandbox({ supervisor, clock })(alice, id).then(() => {
      acknowledged = true;
    });
    await eventually(() => driver.calls.includes(`read ${id}`), 'its record is read');
    await turnsOfTheLoop();
    expect(acknowledged).to.equal(false);
    clock.advance(RETRY_MS);
    await eventually(() => acknowledged, 'it is acknowledged');
    expect(driver.calls.filter((call) => call === `retire ${id}`)).to.have.lengthOf(2);
  });

  it('ends a sandbox at its idle timeout, counted from its last activity', async () => {
    const { supervisor, pool, claim, clock, history } = await aSupervisor({
      pool: { replicas: 1 },
    });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'filled');
    const { id } = await claim(alice, { poolName: 'default', idleTimeoutMs: 60_000 });
    clock.advance(50_000);
    supervisor.send(id, { type: 'ACTIVE', now: clock.now() });
    clock.advance(50_000);
    expect(supervisor.sandbox(id)?.status).to.equal('Running');
    clock.advance(10_001);
    await eventually(() => history.finished.length === 1, 'ended');
    expect(history.finished[0]?.endReason).to.equal('idle-timeout');
  });

  it('trims unclaimed instances when replicas go down and never touches a running one', async () => {
    const { supervisor, pool, claim } = await aSupervisor({ pool: { replicas: 6 } });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 6, 'filled');
    const held = await claim(alice, { poolName: 'default' });
    await supervisor.pools.change(pool.uid, (record) => ({ ...record, replicas: 0 }));
    await eventually(() => supervisor.actors.size === 1, 'only the claimed one left');
    expect(supervisor.sandbox(held.id)?.status).to.equal('Running');
  });

  it('deletes a pool by force with its running sandboxes, and forgets its name', async () => {
    const { supervisor, pool, claim, pools } = await aSupervisor({ pool: { replicas: 3 } });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 3, 'filled');
    await claim(alice, { poolName: 'default' });
    await supervisor.pools.change(pool.uid, (record) => ({ ...record, deleting: 'force' }));
    await eventually(() => pools.records.size === 0 && supervisor.actors.size === 0, 'gone');
    expect(supervisor.pools.index.uidOf(pool.owner.namespace, pool.name)).to.equal(undefined);
  });

  it("removes a pool's registry passwords together with the pool", async () => {
    const forgotten: unknown[] = [];
    const { supervisor, pool, pools } = await aSupervisor({
      pool: { replicas: 0, source: { overrides: { imagePullSecretConfigured: true } } },
      pullSecrets: {
        forget: async (owner) => {
          forgotten.push(owner);
        },
      },
    });
    await supervisor.pools.change(pool.uid, (record) => ({ ...record, deleting: 'force' }));

    await eventually(() => pools.records.size === 0 && forgotten.length > 0, 'gone');
    expect(forgotten).to.deep.equal([{ namespace: pool.owner.namespace, uid: pool.uid }]);
  });

  for (const read of ['refresh', 'lookUp'] as const) {
    it(`keeps a pool that is created during a failed lookup of its name (${read})`, async () => {
      const { supervisor, pools } = await aSupervisor();
      let answer = (_record: undefined): void => undefined;
      pools.get = () =>
        new Promise((resolve) => {
          answer = resolve;
        });
      const looking = supervisor.pools[read](alice.namespace, 'late');
      await new Promise<void>((resolve) => {
        setImmediate(resolve);
      });
      const made = await pools.create(aPool({ name: 'late', replicas: 1 }));
      await eventually(() => supervisor.pools.get(made.uid)?.counts.idle === 1, 'filled');
      answer(undefined);
      await looking;
      expect(supervisor.pools.get(made.uid)).to.include({ phase: 'Ready' });
    });
  }

  it("retires a deleted pool's instances even if that failed before the removal", async () => {
    const { supervisor, driver, pools, pool, clock } = await aSupervisor({ pool: { replicas: 2 } });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 2, 'the pool is full');
    for (const operation of ['retire', 'read'] as const)
      for (let n = 0; n < 2; n++)
        driver.failNext(operation, new OutcomeUnknown('the store is away'));
    await supervisor.pools.change(pool.uid, (record) => ({ ...record, deleting: 'keep-running' }));
    await eventually(() => supervisor.pools.get(pool.uid) === undefined, 'the pool is removed');
    expect(await pools.list()).to.deep.equal([]);
    await eventually(() => {
      clock.advance(10);
      return supervisor.actors.size === 0;
    }, 'nothing is left');
    expect(await driver.records.all()).to.deep.equal([]);
  });

  it('refuses claims from a pool that is being deleted', async () => {
    const { supervisor, pool, claim, pools } = await aSupervisor({ pool: { replicas: 1 } });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'filled');
    const remove = pools.remove.bind(pools);
    let letGo = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    pools.remove = async (record) => {
      await held;
      await remove(record);
    };
    await supervisor.pools.change(pool.uid, (record) => ({ ...record, deleting: 'keep-running' }));
    expect(await refusalOf(claim(alice, { poolName: 'default' }))).to.include({
      code: 'CONFLICT',
      message: 'pool is being deleted',
    });
    letGo();
    await eventually(() => supervisor.actors.size === 0 && pools.records.size === 0, 'drained');
  });

  it('pauses after repeated failed starts, and starts one instance after the pause', async () => {
    const { supervisor, pool, driver, clock } = await aSupervisor({
      pool: { replicas: 1 },
      policy: { refill: { perSecond: 1_000, burst: 1_000, inFlight: 1 } },
    });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'filled');
    clock.advance(STEADY_MS); // one that ends sooner counts as a failed start itself
    for (let i = 0; i < 3; i++) driver.failNext('launch', new Error('no space'));
    driver.end(supervisor.index.list({ phase: 'Idle' }, 0, 1).ids[0] ?? '');
    await eventually(() => supervisor.pools.get(pool.uid)?.phase === 'Failed', 'breaker open');
    const launches = driver.calls.filter((call) => call.startsWith('launch')).length;
    clock.advance(4_000);
    expect(driver.calls.filter((call) => call.startsWith('launch'))).to.have.length(launches);
    clock.advance(1_500);
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'filled again');
    clock.advance(STEADY_MS);
    await eventually(() => supervisor.pools.get(pool.uid)?.phase === 'Ready', 'trusted again');
  });

  it('pauses if instances end right after their start', async () => {
    const { supervisor, pool, driver } = await aSupervisor({ pool: { replicas: 1 } });
    const ended = new Set<string>();
    await eventually(() => {
      const [id] = supervisor.index.list({ phase: 'Idle' }, 0, 1).ids;
      if (id !== undefined && !ended.has(id)) driver.end(id);
      if (id !== undefined) ended.add(id);
      return supervisor.pools.get(pool.uid)?.phase === 'Failed';
    }, 'breaker open');
    expect(ended.size).to.equal(3);
    expect(driver.calls.filter((call) => call.startsWith('launch'))).to.have.length(3);
  });

  it('recreates an actor that threw from its fact, with correct pool counts', async () => {
    const { supervisor, pool, claim, clock } = await aSupervisor({ pool: { replicas: 2 } });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 2, 'filled');
    const { id } = await claim(alice, { poolName: 'default' });
    supervisor.send(id, {
      type: 'FACT',
      now: clock.now(),
      get fact(): never {
        throw new Error('poison');
      },
    });
    expect(supervisor.actors.rebuilds.count).to.equal(1);
    clock.advance(100);
    await eventually(() => supervisor.sandbox(id)?.status === 'Running', 'running again');
    expect(supervisor.pools.get(pool.uid)?.counts).to.include({ idle: 1, running: 1, starting: 0 });
  });

  it('gives up on a sandbox whose actor cannot be recreated', async () => {
    const { supervisor, pool, claim, clock, driver } = await aSupervisor({ pool: { replicas: 2 } });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 2, 'filled');
    const { id } = await claim(alice, { poolName: 'default' });
    const read = driver.read.bind(driver);
    const vitals = Object.defineProperty({} as InstanceFact['vitals'], 'kind', {
      get: () => {
        throw new Error('poison');
      },
    });
    driver.read = async (of) => ({ ...(await read(of)), vitals });
    const poisoned = await driver.read(id);
    supervisor.send(id, { type: 'FACT', now: clock.now(), fact: poisoned });
    await eventually(() => {
      clock.advance(1_000);
      return supervisor.actors.rebuilds.broken.length === 1;
    }, 'broken');

    expect(supervisor.sandbox(id)).to.equal(undefined);
    expect(supervisor.pools.get(pool.uid)?.counts).to.include({ idle: 2, running: 0 });
    driver.read = read;
    expect(await supervisor.rebuild(id)).to.equal('rebuilt');
    expect(supervisor.sandbox(id)?.status).to.equal('Running');
  });

  it('recreates a pool actor that threw from its record, with its counts', async () => {
    const { supervisor, pool, clock } = await aSupervisor({ pool: { replicas: 2 } });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 2, 'filled');
    supervisor.pools.send(pool.uid, {
      type: 'RECORD',
      now: 1,
      updated: NO_INSTANCES,
      get record(): never {
        throw new Error('poison');
      },
    });
    expect(supervisor.pools.get(pool.uid)).to.equal(undefined);
    clock.advance(100);
    expect(supervisor.pools.get(pool.uid)?.counts.idle).to.equal(2);
    await supervisor.pools.change(pool.uid, (record) => ({ ...record, replicas: 3 }));
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 3, 'goes on');
  });
});
