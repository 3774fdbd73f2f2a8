import { expect } from 'chai';
import type { MirrorFollower } from '../../src/actors/runtime/record-mirror.ts';
import { GroupHost } from '../../src/actors/env/group-host.ts';
import { groupSpecOf } from '../../src/actors/env/group-spec.ts';
import { ActorRuntime } from '../../src/actors/runtime/actor-runtime.ts';
import type { ScalingDecision } from '../../src/model/envs/scaling-decision.ts';
import { groupFor } from '../../src/model/envs/autoscaling-group.ts';
import type { EnvRecord } from '../../src/model/envs/env.ts';
import { shardOf } from '../../src/model/shards.ts';
import { CountedPool } from '../properties/counted-pool.ts';
import { eventually } from '../support/harness/eventually.ts';
import { GivenLeases } from '../support/fakes/given-leases.ts';
import { ALICE } from '../support/builders/instance-orders.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { aGroup } from '../machines/autoscaling-examples.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

const anEnv = (part: Partial<EnvRecord> = {}): EnvRecord => ({
  uid: 'env',
  revision: '1',
  name: 'e',
  owner: ALICE,
  createdAt: 1,
  labels: {},
  annotations: {},
  templateRef: { name: 'small' },
  mode: 'WarmPool',
  overrides: {},
  members: [
    {
      name: 'a',
      clusterId: 'local',
      createdAt: 1,
      replicas: 4,
      config: { scalingGroup: 'g', maxReplicas: 50, priority: 3 },
      deleting: false,
    },
  ],
  groups: [aGroup({ up: { mode: 'Aggressive' } })],
  scaling: {},
  conditions: [],
  deleting: false,
  ...part,
});

/** The one env of a store, and those who follow it. */
class OneEnv {
  record: EnvRecord;
  fails = 0;
  readonly #followers: MirrorFollower<EnvRecord>[] = [];

  constructor(record: EnvRecord) {
    this.record = record;
  }

  get(uid: string): EnvRecord | undefined {
    return uid === this.record.uid ? this.record : undefined;
  }

  follow(follower: MirrorFollower<EnvRecord>): void {
    this.#followers.push(follower);
    follower({ kind: 'put', record: this.record }, undefined);
  }

  async change(
    _: string,
    change: (record: EnvRecord) => EnvRecord | Promise<EnvRecord>,
  ): Promise<EnvRecord> {
    if (this.fails-- > 0) throw new Error('no answer');
    const changed = await change(this.record);
    if (changed !== this.record) this.put(changed);
    return this.record;
  }

  put(record: EnvRecord): void {
    this.record = JSON.parse(
      JSON.stringify({ ...record, revision: String(Number(this.record.revision) + 1) }),
    ) as EnvRecord;
    for (const follower of this.#followers)
      follower({ kind: 'put', record: this.record }, undefined);
  }
}

/**
 * Hosts the groups of one env, whose one member `a` has 4 that run; those who asked for it lead.
 */
const aHost = (env = anEnv(), pool = new CountedPool('a', 4)) => {
  const envs = new OneEnv(env);
  const clock = new TestClock();
  const leases = new GivenLeases();
  const decisions: ScalingDecision[] = [];
  const quota = { spent: false };
  const saturated: (readonly [string, number])[] = [];
  pool.running = pool.replicas;
  const runtime = new ActorRuntime({ metrics: silentMetrics, leases, clock, log: quietLog });
  const host = new GroupHost({
    envs,
    runtime,
    decided: async (_, __, decision) => {
      decisions.push(decision);
    },
    saturated: (_, member, until) => {
      saturated.push([member, until]);
    },
    members: {
      observe: async () => [pool.observed(clock.now(), 0)],
      resize: async (_, { id }, { from, to }) => {
        if (quota.spent && to > from) return { kind: 'refused', reason: 'quota' };
        if (pool.decided >= id || pool.replicas !== from)
          return { kind: pool.decided === id ? 'done' : 'overtaken' };
        [pool.replicas, pool.decided] = [to, id];
        return { kind: 'done' };
      },
    },
  });
  host.start();
  const lead = (): void => {
    leases.give(shardOf('env'), 1);
    host.actors.lead(shardOf('env'));
    clock.advance(0);
  };
  return { host, runtime, envs, clock, pool, quota, decisions, saturated, lead };
};

describe('the host of autoscaling groups', () => {
  it('evaluates as soon as it leads, saves its decision, and then sizes the pool', async () => {
    const { host, envs, pool, decisions, lead } = aHost();
    pool.claim(1);
    lead();
    await eventually(() => decisions.length === 1, 'decided');

    expect(pool.replicas).to.equal(7);
    expect(
      groupSpecOf(envs.record, anEnv().groups[0] ?? groupFor('g', { replicas: 1 })).memory.pending
        ?.changes,
    ).to.deep.equal([{ member: 'a', from: 4, to: 7 }]);
    expect(host.group('env', 'g')?.state).to.equal('enabled.resting.coolingDown');
    expect(host.group('env', 'g')?.outlook?.seen.running).to.equal(4);
  });

  it('does nothing while it does not lead', async () => {
    const { host, runtime, clock, pool } = aHost();
    clock.advance(60_000);
    await runtime.outbox.drained();

    expect(pool.replicas).to.equal(4);
    expect(host.group('env', 'g')?.state).to.equal('following');
  });

  it('evaluates at once when a claim wakes it', async () => {
    const { host, clock, pool, decisions, lead } = aHost();
    pool.replicas = 10;
    pool.settle(1);
    pool.settle(1);
    lead();
    await eventually(() => host.group('env', 'g')?.outlook !== undefined, 'it has looked');
    clock.advance(1_000);
    for (let count = 0; count < 9; count++) pool.claim(clock.now());
    host.wake('env', 'a');
    clock.advance(0);
    await eventually(() => decisions.length === 1, 'decided');

    expect(clock.now() - (decisions[0]?.at ?? 0)).to.equal(0);
  });

  describe('at rest', () => {
    const resting = () => {
      const made = aHost(anEnv({ groups: [aGroup({ up: { idleThresholdSeconds: 0 } })] }));
      [made.pool.replicas, made.pool.running, made.pool.idle] = [5, 4, [1]];
      made.lead();
      const rests = (): Promise<void> =>
        eventually(() => made.host.group('env', 'g')?.outlook?.atRest === true, 'it rests');
      return { ...made, rests };
    };

    it('evaluates rarely, and as usual after a change', async () => {
      const { host, runtime, clock, pool, decisions, rests } = resting();
      await rests();
      pool.claim(clock.now());
      clock.advance(20_000);
      await runtime.outbox.drained();
      expect(decisions, 'nobody has looked').to.deep.equal([]);

      host.stir('env', 'a');
      clock.advance(0);
      await eventually(() => decisions.length === 1, 'decided');
      expect(decisions[0]?.changes).to.deep.equal([{ member: 'a', from: 5, to: 6 }]);
    });

    it('misses no change during an evaluation', async () => {
      const { host, clock, pool, decisions, rests } = resting();
      pool.claim(clock.now());
      host.stir('env', 'a');
      await rests();
      clock.advance(5_000);
      await eventually(() => decisions.length === 1, 'decided');
    });
  });

  it('repeats a save with an unknown outcome', async () => {
    const { envs, clock, pool, decisions, lead, runtime } = aHost();
    envs.fails = 1;
    pool.claim(1);
    lead();
    await runtime.outbox.drained();
    clock.advance(5_000);
    await eventually(() => decisions.length === 1, 'decided');

    expect(pool.replicas).to.equal(7);
  });

  it('drops a decision based on settings that the owner has changed', async () => {
    const { envs, host, pool, lead } = aHost();
    pool.claim(1);
    const change = envs.change.bind(envs);
    envs.change = async (uid, by) => {
      envs.change = change;
      // written elsewhere, and not heard of here
      envs.record = { ...envs.record, groups: [aGroup({ maxReplicas: 4 })] };
      return await change(uid, by);
    };
    lead();
    await eventually(
      () => host.group('env', 'g')?.state.startsWith('enabled.resting') === true,
      'dropped',
    );

    expect(pool.replicas).to.equal(4);
    expect(envs.record.scaling).to.deep.equal({});
  });

  it('drops a decision based on settings that the owner changed before the repeated save', async () => {
    const { envs, host, pool, clock, runtime, lead } = aHost();
    pool.claim(1);
    envs.fails = 1;
    lead();
    await runtime.outbox.settled();
    expect(host.group('env', 'g')?.state).to.equal('enabled.saving');
    envs.put({ ...envs.record, groups: [aGroup({ maxReplicas: 4 })] });
    clock.advance(5_000);
    await eventually(
      () => host.group('env', 'g')?.state.startsWith('enabled.resting') === true,
      'dropped',
    );

    expect(pool.replicas).to.equal(4);
    expect(envs.record.scaling).to.deep.equal({});
  });

  it('reports a saturated member', async () => {
    const { clock, pool, quota, decisions, saturated, lead } = aHost();
    quota.spent = true;
    pool.claim(1);
    lead();
    await eventually(() => decisions.length === 1, 'tried');

    expect(pool.replicas).to.equal(4);
    expect(saturated).to.deep.equal([['a', clock.now() + 120_000]]);
  });

  it('forgets a saturation that only a lost actor knew', async () => {
    const { host, envs, clock, pool, quota, saturated, lead, runtime } = aHost();
    quota.spent = true;
    pool.claim(1);
    lead();
    await eventually(() => saturated.length === 1, 'left alone');
    await runtime.outbox.settled();
    envs.record = { ...envs.record, scaling: {} }; // as where that could not be saved
    host.rebuild('env/g');

    expect(saturated).to.deep.equal([
      ['a', clock.now() + 120_000],
      ['a', 0],
    ]);
  });

  it('finishes a decision that its predecessor saved', async () => {
    const first = aHost();
    first.pool.claim(1);
    first.lead();
    await eventually(() => first.decisions.length === 1, 'decided');
    const pool = new CountedPool('a', 4);
    const { decisions, lead } = aHost(first.envs.record, pool);
    lead();
    await eventually(() => decisions.length === 1, 'finished');

    expect(pool.replicas).to.equal(7);
    expect(decisions[0]?.id).to.equal(first.decisions[0]?.id);
  });

  it('forgets a deleted group', () => {
    const { host, envs, clock, lead } = aHost();
    lead();
    envs.put({ ...envs.record, groups: [] });

    expect(host.group('env', 'g')).to.equal(undefined);
    clock.advance(60_000);
  });
});

describe('the settings of a group in its env', () => {
  it("are the bounds and priorities of its members, by default up to the group's maximum", () => {
    const env = anEnv();
    const [member] = env.members;
    if (!member) throw new Error('no member');
    const others = [
      { ...member, name: 'b', config: { scalingGroup: 'g' } },
      { ...member, name: 'c', config: {} },
      { ...member, name: 'd', deleting: 'force' as const },
    ];

    expect(
      groupSpecOf(
        { ...env, members: [member, ...others] },
        env.groups[0] ?? groupFor('g', { replicas: 1 }),
      ).rules,
    ).to.deep.equal([
      { name: 'a', minReplicas: 0, maxReplicas: 50, scaleUpPriority: 3, scaleDownPriority: -3 },
      { name: 'b', minReplicas: 0, maxReplicas: 100, scaleUpPriority: 0, scaleDownPriority: 0 },
    ]);
  });
});
