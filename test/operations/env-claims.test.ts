import { expect } from 'chai';
import type { ClaimEntry } from '../../src/contracts/coordination/claims.ts';
import { aPool } from '../support/builders/a-pool.ts';
import { alice } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { anEnvWorld } from '../support/harness/an-env-world.ts';
import { rejection } from '../support/harness/rejection.ts';

/** An env `e` whose members have so many idle instances, and are preferred in the order given. */
const stocked = async (replicas: Readonly<Record<string, number>>) => {
  const world = await anEnvWorld();
  await world.made();
  const names = Object.keys(replicas);
  for (const [name, count] of Object.entries(replicas)) {
    await world.addMember(alice, 'e', {
      name,
      replicas: count,
      config: { priority: names.length - names.indexOf(name), maxReplicas: 9 },
    });
    await eventually(
      () => world.supervisor.pools.get(world.pool(name)?.uid ?? '')?.counts.idle === count,
      `${name} is stocked`,
    );
  }
  const claim = async (poolName: string, waitMs = 0): Promise<string> =>
    (await world.claimAs(alice, { poolName, waitMs })).poolName;
  return { ...world, claimFrom: claim };
};

describe('a claim by the name of an env', () => {
  it('goes to the member with stock of the highest priority', async () => {
    const { claimFrom } = await stocked({ none: 0, first: 1, second: 1 });
    expect([await claimFrom('e'), await claimFrom('e')]).to.deep.equal(['first', 'second']);
    expect(await rejection(claimFrom('e'))).to.include({ code: 'POOL_EXHAUSTED' });
  });

  it('waits on the member of the highest priority if no member has stock', async () => {
    const { claimFrom, updateMember } = await stocked({ first: 0, second: 0 });
    const waiting = claimFrom('e', 60_000);
    await updateMember(
      alice,
      { env: 'e', member: 'first' },
      { replicas: 1, config: {}, ifMatch: undefined },
    );
    expect(await waiting).to.equal('first');
  });

  it('tries another member if the first one fails', async () => {
    const { claimFrom, coordination, driver, pool, supervisor } = await stocked({
      first: 1,
      second: 1,
    });
    const admit = coordination.admitClaim;
    const asked: string[] = [];
    Object.assign(coordination, {
      admitClaim: async (entry: ClaimEntry) => {
        asked.push(entry.pool.uid);
        if (entry.pool.uid === pool('first')?.uid) {
          driver.becomeUnavailable(entry.instance);
          await eventually(
            () => supervisor.pools.get(pool('first')?.uid ?? '')?.counts.unavailable === 1,
            'it is not ready',
          );
        }
        return await admit(entry);
      },
    });
    expect(await claimFrom('e')).to.equal('second');
    expect(asked).to.deep.equal([pool('first')?.uid, pool('second')?.uid]);
  });

  it('takes the pool of that name, unless the pool is a member of the env', async () => {
    const world = await stocked({ e: 0, other: 1 });
    expect(await world.claimFrom('e')).to.equal('other');
    await world.createEnv(alice, {
      name: 'default',
      templateRef: { name: 't' },
      mode: 'WarmPool',
      overrides: {},
      labels: {},
      annotations: {},
    });
    await world.addMember(alice, 'default', { name: 'd', replicas: 1, config: {} });
    expect(aPool().name).to.equal('default');
    expect(await rejection(world.claimFrom('default'))).to.include({ code: 'POOL_EXHAUSTED' });
  });
});
