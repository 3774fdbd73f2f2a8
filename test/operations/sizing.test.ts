import { expect } from 'chai';
import type { GroupChange } from '../../src/model/envs/autoscaling-group.ts';
import { OutcomeUnknown } from '../../src/contracts/sandbox-driver.ts';
import { alice } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { anEnvWorld, type EnvWorldOptions } from '../support/harness/an-env-world.ts';
import { rejection } from '../support/harness/rejection.ts';

const NO_WINDOWS = { idleTimeoutSeconds: 10, stabilizationSeconds: 0, protectionWindowSeconds: 60 };

/**
 * An env `e` with one member `m`, of which so many idle, and its group as the change has it; it
 * decides once `size` was called.
 */
const aSizedEnv = async ({
  idle = 1,
  group = {},
  ...options
}: EnvWorldOptions & { readonly group?: GroupChange; readonly idle?: number } = {}) => {
  const world = await anEnvWorld(options);
  await world.made({ defaultStartupTimeout: '5m' });
  await world.addMember(alice, 'e', { name: 'm', replicas: idle, config: { maxReplicas: 50 } });
  await world.updateGroup(
    alice,
    { env: 'e', group: 'm' },
    {
      ...group,
      scaleUpPolicy: { mode: 'Aggressive', ...group.scaleUpPolicy },
    },
  );
  const env = world.env();
  if (!env) throw new Error('there is no env');
  const shown = () => world.supervisor.pools.ofMember(env, 'm');
  const filled = (count: number) =>
    eventually(() => shown()?.counts.idle === count, `${count} idle`);
  await filled(idle);
  const claim = (principal = 'k1') =>
    world.claimAs({ ...alice, keyId: principal }, { poolName: 'm' });
  const decisions = () => world.groupDecisions(alice, 'e', 'm');
  /** What is under way goes on as far as it gets without the clock. */
  const settled = async (): Promise<void> => {
    for (let turn = 0; turn < 5; turn++) {
      await world.supervisor.runtime.outbox.drained();
      await new Promise<void>((resolve) => {
        setImmediate(resolve);
      });
    }
  };
  /** The group begins to decide, and has looked once. */
  const begin = async (): Promise<void> => {
    world.size();
    world.clock.advance(0);
    await settled();
  };
  /** Lets time go by in steps of a look, each carried out. */
  const pass = async (seconds: number): Promise<void> => {
    for (let passed = 0; passed < seconds; passed += 5) {
      world.clock.advance(5_000);
      await settled();
    }
  };
  return {
    ...world,
    demand: world.parts.demand,
    shown,
    filled,
    claim,
    decisions,
    begin,
    pass,
    uid: shown()?.record.uid ?? '',
  };
};

describe('the pools of a group', () => {
  it('grow at once when a claim is refused, and store the decision', async () => {
    const world = await aSizedEnv({ idle: 0, group: { maxReplicas: 10 } });
    await world.begin();

    expect(await rejection(world.claim())).to.have.property('code', 'POOL_EXHAUSTED');
    world.clock.advance(250);
    await eventually(() => (world.shown()?.counts.idle ?? 0) > 0, 'an instance');
    await eventually(() => world.history.decisions.size === 1, 'remembered');

    const [decision] = await world.decisions();
    expect(decision).to.deep.include({
      cause: 'demand',
      changes: [{ member: 'm', from: 0, to: 3 }],
      outcomes: { m: { kind: 'done' } },
    });
    expect(decision?.seen).to.include({ pending: 1, running: 0 });
    expect(world.shown()?.record.decided).to.deep.equal({ id: decision?.id });
  });

  it('grow for waiting claims, which get the new instances', async () => {
    const world = await aSizedEnv({ idle: 0, group: { maxReplicas: 10 } });
    world.size();
    const claimed = world.claimAs(alice, { poolName: 'm', waitMs: 60_000 });
    claimed.catch(() => undefined);
    await eventually(() => world.demand.cameAt(world.uid) > 0, 'it waits');
    await eventually(() => {
      world.clock.advance(100);
      return world.shown()?.counts.running === 1;
    }, 'it is served');

    expect(await claimed).to.have.property('status', 'Running');
    expect((await world.decisions()).at(-1)?.seen.pending).to.equal(1);
  });

  it('are evaluated when the last idle instance is taken', async () => {
    const world = await aSizedEnv({
      idle: 1,
      group: { maxReplicas: 10, scaleUpPolicy: { cooldownSeconds: 0 } },
    });
    await world.begin();
    await world.pass(5);
    const before = world.shown()?.record.replicas ?? 0;
    await world.filled(before);

    for (let count = 0; count < before; count++) await world.claim(`k${count}`);
    world.clock.advance(250);

    await eventually(() => (world.shown()?.record.replicas ?? 0) > before, 'it grew');
  });

  it('retire the longest idle first, and no starting or recently created instances', async () => {
    const world = await aSizedEnv({ idle: 6, group: { enabled: false } });
    const old = world.idle(6);
    world.clock.advance(60_000);
    await world.supervisor.pools.change(world.uid, (record) => ({ ...record, replicas: 8 }));
    await world.filled(8);

    await world.supervisor.pools.change(world.uid, (record) => ({
      ...record,
      replicas: 1,
      decided: { id: 1, sparesMs: 60_000 },
    }));
    await eventually(() => world.shown()?.counts.idle === 2, 'the old ones went');
    expect(world.idle(8).some((id) => old.includes(id))).to.equal(false);

    world.clock.advance(60_000);
    await world.filled(1);
  });

  it('shrink to the buffer after their idle time', async () => {
    const world = await aSizedEnv({
      idle: 6,
      group: { minReplicas: 1, maxReplicas: 10, scaleDownPolicy: NO_WINDOWS },
    });
    world.clock.advance(120_000);
    world.size();
    await world.pass(60);

    await eventually(() => (world.shown()?.record.replicas ?? 9) < 6, 'it shrank');
    const last = (await world.decisions()).find(({ cause }) => cause === 'surplus');
    expect(last?.outcomes).to.deep.equal({ m: { kind: 'done' } });
    expect(world.shown()?.record.decided).to.include({ sparesMs: 60_000 });
  });

  it('shrink if instances cannot start, pause their growth, and report it', async () => {
    const world = await aSizedEnv({ idle: 0, group: { maxReplicas: 10 } });
    for (let count = 0; count < 20; count++)
      world.driver.failNext('launch', new Error('no such image'));
    await world.begin();
    await rejection(world.claim());
    world.clock.advance(250);
    await eventually(
      () => (world.supervisor.pools.startTrouble(world.uid)?.count ?? 0) > 0,
      'starts fail',
    );
    await world.pass(10);

    await eventually(() => world.shown()?.record.replicas === 0, 'taken back');
    expect((await world.decisions())[0]).to.include({ cause: 'failure' });
    expect(world.members.member(world.env()?.uid ?? '', 'm')?.state).to.equal('Saturated');
  });

  it("do not grow beyond the owner's quota of replicas", async () => {
    const world = await aSizedEnv({ idle: 0, replicas: 2, group: { maxReplicas: 10 } });
    await world.begin();
    await rejection(world.claim());
    world.clock.advance(250);

    await eventually(() => world.shown()?.record.replicas === 2, 'it grew as far as it may');
    await world.pass(10);
    expect(world.shown()?.record.replicas).to.equal(2);
  });

  it("do not grow beyond the owner's quota of cores, which limits the headroom shown", async () => {
    const world = await aSizedEnv({ idle: 0, cpu: 2, group: { maxReplicas: 10 } });
    await world.begin();
    expect((await world.getEnv(alice, 'e')).observed.map(({ headroom }) => headroom)).to.deep.equal(
      [2],
    );
    await rejection(world.claim());
    world.clock.advance(250);

    await eventually(() => world.shown()?.record.replicas === 2, 'it grew as far as it may');
    await world.pass(10);
    expect(world.shown()?.record.replicas).to.equal(2);
    expect(await world.coordination.used(alice)).to.include({ replicas: 2, cpu: 2_000 });
    expect((await world.getEnv(alice, 'e')).observed.map(({ headroom }) => headroom)).to.deep.equal(
      [0],
    );
  });

  it('report once, and in a condition, that the quota stops their growth', async () => {
    const world = await aSizedEnv({ idle: 0, replicas: 1, group: { maxReplicas: 10 } });
    const condition = async (type: string) =>
      (await world.getEnv(alice, 'e')).conditions.find((one) => one.type === type);
    await world.begin();
    expect(await condition('QuotaOk')).to.include({ status: 'True', reason: 'WithinQuota' });
    await rejection(world.claim());
    world.clock.advance(250);
    await world.filled(1);
    await world.claim();
    await rejection(world.claim('k2'));
    await world.pass(60);

    expect(await condition('QuotaOk')).to.include({
      status: 'False',
      reason: 'QuotaReached',
      message: 'group m: the quota is used up',
    });
    expect(await condition('ScalingLimited')).to.include({ status: 'False' });
    const told = (await world.decisions()).filter(({ limits = [] }) => limits.length > 0);
    expect(told.map(({ limits }) => limits?.map(({ message }) => message))).to.deep.equal([
      ['the quota is used up'],
    ]);
    expect(world.env()?.conditions.find(({ type }) => type === 'QuotaOk')).to.include({
      reason: 'QuotaReached',
    });
  });

  it("report once, and in a condition, that the group's maximum stops their growth", async () => {
    const world = await aSizedEnv({ idle: 1, group: { maxReplicas: 1 } });
    const limited = async () =>
      (await world.getEnv(alice, 'e')).conditions.find(({ type }) => type === 'ScalingLimited');
    await world.begin();
    await world.claim();
    await world.pass(60);

    expect(await limited()).to.include({
      status: 'True',
      reason: 'MaxReplicasReached',
      message: "group m: the group's maximum is 1",
    });
    expect(
      (await world.decisions()).map(({ changes, limitedBy }) => ({ changes, limitedBy })),
    ).to.deep.equal([{ changes: [], limitedBy: ["the group's maximum is 1"] }]);

    await world.updateGroup(alice, { env: 'e', group: 'm' }, { maxReplicas: 9 });
    await world.pass(30);
    expect(await limited()).to.include({ status: 'False', reason: 'Unlimited', message: '' });
  });

  it('grow for refused claims even without a quiet window', async () => {
    const world = await aSizedEnv({
      idle: 0,
      group: {
        maxReplicas: 10,
        scaleUpPolicy: {
          mode: 'Conservative',
          idleThresholdSeconds: 0,
          idleZeroQuietWindowSeconds: 0,
        },
      },
    });
    await rejection(world.claim());
    await world.begin();

    expect((await world.decisions())[0]?.seen.pending).to.equal(1);
  });

  it('are not sized while the group is disabled', async () => {
    const world = await aSizedEnv({ idle: 0, group: { enabled: false, maxReplicas: 10 } });
    world.size();
    await rejection(world.claim());
    await world.pass(30);

    expect(world.shown()?.record.replicas).to.equal(0);
    expect(await world.decisions()).to.deep.equal([]);
  });
});

describe('an instance that no node has room for', () => {
  it('is retired after a minute, and does not cause growth', async () => {
    const world = await aSizedEnv({ idle: 0, group: { maxReplicas: 1 } });
    world.driver.startsByItself = false;
    await world.begin();
    await rejection(world.claim());
    world.clock.advance(250);
    await eventually(() => world.driver.running().length === 1, 'one starts');
    const [id = ''] = world.driver.running();
    world.driver.findNoPlace(id);
    await world.pass(50);
    expect(world.shown()?.record.replicas, 'it may yet find one').to.equal(1);

    await world.pass(15);

    expect(world.shown()?.record.replicas).to.equal(0);
    expect((await world.decisions())[0]).to.include({
      cause: 'failure',
      reason: 'm: 1 could not start (unschedulable)',
    });
  });
});

describe('a sizing decision on a pool', () => {
  const size = async (
    world: Awaited<ReturnType<typeof aSizedEnv>>,
    id: number,
    from: number,
    to: number,
  ) => {
    const env = world.env();
    if (!env) throw new Error('there is no env');
    return await world.groupMembers.resize(env, { id, cause: 'demand' }, { member: 'm', from, to });
  };

  it('is applied once, and succeeds if it was applied before', async () => {
    const world = await aSizedEnv({ idle: 2, group: { enabled: false } });

    expect(await size(world, 5, 2, 3)).to.deep.equal({ kind: 'done' });
    await world.updatePool(alice, 'm', { replicas: 2 });
    expect(await size(world, 5, 2, 3)).to.deep.equal({ kind: 'done' });

    expect(world.shown()?.record).to.include({ replicas: 2 });
  });

  it('is dropped if the pool has another size or a later decision', async () => {
    const world = await aSizedEnv({ idle: 2, group: { enabled: false } });
    await size(world, 5, 2, 3);

    expect(await size(world, 6, 2, 4)).to.deep.equal({ kind: 'overtaken' });
    expect(await size(world, 4, 3, 4)).to.deep.equal({ kind: 'overtaken' });

    expect(world.shown()?.record).to.deep.include({ replicas: 3, decided: { id: 5 } });
    expect((await world.coordination.used(alice)).replicas).to.equal(3);
  });

  it('is dropped if it would leave fewer instances than claimed since', async () => {
    const world = await aSizedEnv({ idle: 3, group: { enabled: false } });
    const env = world.env();
    if (!env) throw new Error('there is no env');
    for (const principal of ['k1', 'k2']) await world.claim(principal);

    expect(
      await world.groupMembers.resize(
        env,
        { id: 5, cause: 'surplus' },
        { member: 'm', from: 3, to: 1 },
      ),
    ).to.deep.equal({ kind: 'overtaken' });
    expect(world.shown()?.record).to.include({ replicas: 3 });
    expect(
      await world.groupMembers.resize(
        env,
        { id: 6, cause: 'limits' },
        { member: 'm', from: 3, to: 1 },
      ),
      "that is its owner's word",
    ).to.deep.equal({ kind: 'done' });
  });

  it('is refused if the quota is used up, and reserves nothing', async () => {
    const world = await aSizedEnv({ idle: 2, replicas: 3, group: { enabled: false } });

    expect(await size(world, 5, 2, 4)).to.deep.equal({ kind: 'refused', reason: 'quota' });
    expect(await size(world, 5, 2, 3)).to.deep.equal({ kind: 'done' });
    expect((await world.coordination.used(alice)).replicas).to.equal(3);
  });

  it('counts in full while its outcome is unknown', async () => {
    const world = await aSizedEnv({ idle: 2, group: { enabled: false } });
    const update = world.pools.update.bind(world.pools);
    world.pools.update = async () => {
      world.pools.update = update;
      throw new OutcomeUnknown('no answer');
    };

    expect(await rejection(size(world, 5, 2, 4))).to.be.instanceOf(OutcomeUnknown);
    expect((await world.coordination.used(alice)).replicas).to.equal(4);

    expect(await size(world, 5, 2, 4)).to.deep.equal({ kind: 'done' });
  });
});

describe("a group's view of a pool", () => {
  it('shows its counts, its removable instances, its pending changes and the quota left', async () => {
    const world = await aSizedEnv({ idle: 2, replicas: 10, group: { enabled: false } });
    world.clock.advance(120_000);
    await world.updatePool(alice, 'm', { replicas: 3 });
    await world.filled(3);
    await world.claim();
    const [env, group] = [world.env(), world.env()?.groups[0]];
    if (!env || !group) throw new Error('there is no group');

    expect(await world.groupMembers.observe(env, group)).to.deep.equal([
      {
        name: 'm',
        desired: 3,
        running: 1,
        idle: 2,
        unavailable: 0,
        settled: 1,
        pending: 0,
        waiting: 0,
        claimedAt: world.clock.now(),
        quota: 7,
        reachable: true,
        decided: 0,
      },
    ]);
  });
});
