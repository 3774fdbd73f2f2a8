import { expect } from 'chai';
import { ApprovalHost } from '../../src/actors/approval/approval-host.ts';
import { ApprovalMirror } from '../../src/actors/approval/approval-mirror.ts';
import type { ActorRuntime } from '../../src/actors/runtime/actor-runtime.ts';
import { MOST_THROWS } from '../../src/actors/runtime/rebuilds.ts';
import { inspectedKinds } from '../../src/daemon/inspection.ts';
import type { EnvRecord } from '../../src/model/envs/env.ts';
import type { InstanceId } from '../../src/model/identifiers.ts';
import { ACTOR_KINDS, type ActorKind } from '../../src/model/inspection.ts';
import type { InstanceFact } from '../../src/model/sandbox.ts';
import { shardOf } from '../../src/model/shards.ts';
import { debug } from '../../src/services/debug/debug.ts';
import { MemoryApprovals } from '../support/fakes/memory-approvals.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { anApproval } from '../webhooks/webhook-support.ts';
import { alice } from '../support/harness/a-supervisor.ts';
import { anEnvWorld } from '../support/harness/an-env-world.ts';
import { eventually } from '../support/harness/eventually.ts';

/** As facts by which a machine throws, as long as they are poisoned. */
class Poison {
  isThere = true;

  in<T extends object>(facts: T, field: keyof T | 'toJSON'): T {
    const { [field as keyof T]: value } = facts;
    const get = (): unknown => {
      if (this.isThere) throw new Error('poison');
      return value;
    };
    return Object.defineProperty({ ...facts }, field, { get, enumerable: field !== 'toJSON' });
  }
}

/**
 * A replica that leads all, with an env `e`, its member `m` and that one's group, and two that are
 * idle.
 */
const aReplica = async () => {
  const world = await anEnvWorld();
  const { supervisor, driver, pools, coordination, clock, envs, parts } = world;
  const approvals = await anOpenApproval(supervisor.runtime, clock.now());
  const kinds = inspectedKinds({
    parts: { driver, records: { pools, envs } },
    supervisor,
    envs: parts,
    approvals,
  });
  const { listActors, getActor, rebuildActor } = debug({
    kinds,
    supervisor,
    driver,
    clock,
    coordination,
    replica: 'one',
    reflectors: () => [],
    webhooks: () => [],
  });
  await world.made();
  await world.addMember(alice, 'e', { name: 'm', replicas: 2, config: {} });
  await eventually(
    () => (world.pool('m') && supervisor.pools.get(world.pool('m')?.uid ?? '')?.counts.idle) === 2,
    'two are idle',
  );
  const env = (): EnvRecord => {
    const record = world.env();
    if (!record) throw new Error('there is no env');
    return record;
  };
  const keys = {
    sandbox: (await world.claim(alice, { poolName: 'm' })).id,
    pool: world.pool('m')?.uid ?? '',
    member: `${env().uid}/m`,
    group: `${env().uid}/m`,
    approval: 'a',
  };
  const original = env();
  const putEnv = async (part: Partial<EnvRecord>) =>
    await envs.update({ ...original, ...part, revision: env().revision });
  const brokenOf = (kind: ActorKind) =>
    listActors(alice, { kind, state: 'broken', limit: 10 }).items;
  return { ...world, approvals, keys, original, putEnv, brokenOf, getActor, rebuildActor };
};

/** The approval `a`, which this replica leads. */
const anOpenApproval = async (runtime: ActorRuntime, now: number) => {
  const approvals = new MemoryApprovals();
  await approvals.create(anApproval('a', now));
  const mirror = new ApprovalMirror({ approvals, clock: runtime.clock, log: quietLog });
  const nothing = async (): Promise<void> => undefined;
  const host = new ApprovalHost({
    runtime,
    approvals: mirror,
    grantMs: 600_000,
    kept: 100,
    expire: nothing,
    settle: nothing,
  });
  await mirror.start();
  host.start();
  host.actors.lead(shardOf('a'));
  return { approvals, mirror, host };
};

type Replica = Awaited<ReturnType<typeof aReplica>>;

const factOf = (id: InstanceId): InstanceFact => ({
  id,
  record: undefined,
  vitals: { kind: 'gone', exitCode: null, reason: '' },
});

/** Has the actor's machine throw once. */
const THROWS: Readonly<Record<ActorKind, (replica: Replica, poison: Poison) => Promise<unknown>>> =
  {
    sandbox: async ({ supervisor, keys, clock }, poison) =>
      supervisor.send(
        keys.sandbox,
        poison.in({ type: 'FACT', now: clock.now(), fact: factOf(keys.sandbox) }, 'fact'),
      ),
    pool: async ({ supervisor, keys }, poison) => {
      supervisor.pools.send(keys.pool, poison.in({ type: 'LEAD', now: 1 }, 'now'));
    },
    member: async ({ putEnv, original: { members } }, poison) =>
      await putEnv({ members: members.map((member) => poison.in(member, 'clusterId')) }),
    group: async ({ putEnv, original: { groups }, size }, poison) => {
      size(); // one that follows looks at no words
      await putEnv({ groups: groups.map((group) => poison.in(group, 'toJSON')) });
    },
    approval: async ({ approvals: { mirror, host }, keys }, poison) => {
      const record = mirror.get(keys.approval);
      if (record)
        host.actors.send(keys.approval, poison.in({ type: 'RECORD', record, now: 1 }, 'record'));
    },
  };

/** Has its machine throw until it is left alone. */
const broken = async (kind: ActorKind, replica: Replica): Promise<Poison> => {
  const { clock, keys, getActor } = replica;
  const poison = new Poison();
  const isThere = async (): Promise<boolean> => {
    clock.advance(2_000);
    return await getActor(alice, { kind, text: keys[kind] }).then(
      () => true,
      () => false,
    );
  };
  for (let n = 0; n < MOST_THROWS && replica.brokenOf(kind).length === 0; n++) {
    await THROWS[kind](replica, poison);
    await eventually(isThere, 'it has an actor, or is broken');
  }
  return poison;
};

describe('an actor whose machine throws repeatedly', () => {
  for (const kind of ACTOR_KINDS) {
    it(`is shown as broken, and can be rebuilt by hand: ${kind}`, async () => {
      const replica = await aReplica();
      const {
        keys: { [kind]: key },
        brokenOf,
        getActor,
        rebuildActor,
      } = replica;
      const before = await getActor(alice, { kind, text: key });
      expect(brokenOf(kind)).to.deep.equal([]);
      const poison = await broken(kind, replica);

      expect(brokenOf(kind)).to.have.length(1);
      expect(brokenOf(kind)[0]).to.include({ kind, key, name: before.name, state: 'broken' });
      const { state, leader, record, why } = await getActor(alice, { kind, text: before.name });
      expect([state, leader, record.differs]).to.deep.equal(['broken', before.leader, []]);
      expect(why).to.have.length(1);

      poison.isThere = false;
      expect(await rebuildActor(alice, { kind, text: key })).to.include({ key, name: before.name });
      expect(brokenOf(kind)).to.deep.equal([]);
    });
  }

  it('is no longer shown once its approval is over', async () => {
    const replica = await aReplica();
    const { approvals, brokenOf, keys } = replica;
    await broken('approval', replica);
    expect(brokenOf('approval')).to.have.length(1);
    await approvals.mirror.amend(keys.approval, (record) => ({ ...record, status: 'denied' }));

    expect(brokenOf('approval')).to.deep.equal([]);
  });

  it('is no longer shown once it has left its env and its pool is gone', async () => {
    const replica = await aReplica();
    const { pools, pool, putEnv, brokenOf } = replica;
    await broken('member', replica);
    const record = pool('m');
    if (record) await pools.remove(record);
    expect(brokenOf('member')).to.have.length(1);
    await putEnv({ members: [] });

    expect(brokenOf('member')).to.deep.equal([]);
  });
});
