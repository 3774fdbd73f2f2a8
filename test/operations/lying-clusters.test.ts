import { expect } from 'chai';
import type { CopiedMember } from '../../src/model/envs/env-copy.ts';
import { CopyFaults, copiesOnWorlds } from '../support/fakes/copies-on-worlds.ts';
import { alice } from '../support/harness/a-supervisor.ts';
import { anEnvWorld } from '../support/harness/an-env-world.ts';

const STEP_MS = 250;

/** A manager whose env `e` has one group, with `honest` on w1 and `other` on w2: 4 and 1 of 6. */
const aFleet = async () => {
  const [w1, w2] = [await anEnvWorld(), await anEnvWorld()];
  const faults = new CopyFaults();
  const copies = copiesOnWorlds({
    w1: { operations: w1, faults: new CopyFaults() },
    w2: { operations: w2, faults },
  });
  const hub = await anEnvWorld({ copies });
  await hub.made();
  const add = (name: string, clusterId: string, config: object, replicas: number) =>
    hub.addMember(alice, 'e', { name, clusterId, replicas, config });
  await add('honest', 'w1', { maxReplicas: 6 }, 4);
  await add('other', 'w2', { scalingGroup: 'honest' }, 1);
  await hub.updateGroup(
    alice,
    { env: 'e', group: 'honest' },
    {
      ifMatch: undefined,
      minReplicas: 5,
      maxReplicas: 6,
    },
  );
  const worlds = [w1, w2, hub];
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += STEP_MS) {
      for (const { clock } of worlds) clock.advance(STEP_MS);
      await new Promise((resolve) => void setImmediate(resolve));
    }
  };
  const sizes = () => ({ honest: w1.pool('honest')?.replicas, other: w2.pool('other')?.replicas });
  return { w1, w2, hub, worlds, copies, faults, pass, sizes };
};

describe('a cluster with false reports about the pools of an env', () => {
  const claims: Readonly<Record<string, Partial<CopiedMember>>> = {
    'that all of its size runs': { desired: 6, running: 6, idle: 0, current: 6 },
    'that it has more than the group may': { desired: 100_000, running: 100_000, idle: 100_000 },
  };
  for (const [what, lie] of Object.entries(claims))
    it(`takes nothing from honest clusters by reporting ${what}, before and after a restart`, async () => {
      const { hub, worlds, copies, faults, pass, sizes } = await aFleet();
      hub.size();
      await pass(10_000);
      expect(sizes()).to.deep.equal({ honest: 4, other: 1 });

      faults.lie = (member) => ({ ...member, ...lie });
      await pass(90_000);
      expect(sizes().honest).to.be.at.least(4);

      hub.parts.stop();
      worlds[2] = await anEnvWorld({ copies, envs: hub.envs });
      worlds[2].size();
      await pass(90_000);
      expect(sizes().honest).to.be.at.least(4);
    });

  it('gets its pool size again if it reports one that nobody requested', async () => {
    const { w2, pass, sizes } = await aFleet();
    const { uid, revision } = w2.pool('other') ?? {};
    expect([uid, revision]).to.not.include(undefined);
    await w2.supervisor.pools.change(uid ?? '', (current) => ({ ...current, replicas: 6 }));
    expect(sizes().other).to.equal(6);

    await pass(10_000);

    expect(sizes()).to.deep.equal({ honest: 4, other: 1 });
  });

  it('gets no more than the group requested, even after a restart', async () => {
    const { hub, worlds, copies, faults, pass, sizes } = await aFleet();
    hub.size();
    await hub.updateMember(
      alice,
      { env: 'e', member: 'other' },
      {
        config: { scaleUpPriority: 9 },
        ifMatch: undefined,
      },
    );
    await hub.updateGroup(
      alice,
      { env: 'e', group: 'honest' },
      { minReplicas: 6, ifMatch: undefined },
    );
    await pass(10_000);
    expect(sizes()).to.deep.equal({ honest: 4, other: 2 });

    hub.parts.stop();
    worlds[2] = await anEnvWorld({ copies, envs: hub.envs });
    worlds[2].size();
    await pass(10_000);
    expect(sizes()).to.deep.equal({ honest: 4, other: 2 });

    faults.lie = (member) => ({ ...member, desired: 3, running: 3, idle: 0 });
    await pass(90_000);
    expect(sizes()).to.deep.equal({ honest: 4, other: 2 });
  });

  it('can have the size that its owner requested last', async () => {
    const { hub, pass, sizes } = await aFleet();
    for (const replicas of [6, 2, 6]) {
      await hub.updateMember(
        alice,
        { env: 'e', member: 'other' },
        { replicas, config: {}, ifMatch: undefined },
      );
      await pass(10_000);
      expect(sizes().other).to.equal(replicas);
    }
  });
});
