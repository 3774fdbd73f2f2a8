import { expect } from 'chai';
import { PoolStats } from '../../src/actors/pool/pool-stats.ts';
import { aPool } from '../support/builders/a-pool.ts';
import { aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';

describe('the statistics of pools', () => {
  it('count idle, starting and running instances', async () => {
    const { supervisor, claim, pool } = await aSupervisor({ pool: { replicas: 3 } });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 3, 'three idle');
    await claim({ ...pool.owner, role: 'user', keyId: 'k' }, { poolName: pool.name });

    const stats = new PoolStats(supervisor.pools);

    expect(
      [...stats.byPool()].map(
        ({ labels: { pool: name, state }, value }) => `${name} ${state} ${value}`,
      ),
    ).to.deep.equal(['default idle 2', 'default starting 0', 'default running 1']);
    expect([...stats.replicas()].map(({ value }) => value)).to.deep.equal([3]);
    expect(stats.withoutIdle()).to.equal(0);
  });

  it('show the 50 largest pools, and the sum of the others', async () => {
    const { supervisor, pools } = await aSupervisor({ pool: { replicas: 0 } });
    for (let i = 1; i <= 60; i++) await pools.create(aPool({ name: `p${i}`, replicas: i }));

    const shown = [...new PoolStats(supervisor.pools).replicas()];

    expect(shown).to.have.length(51);
    expect(shown[0]?.labels.pool).to.equal('p60');
    expect(shown.at(-1)).to.deep.equal({
      labels: { pool_namespace: '(others)', pool: '(others)' },
      value: 55,
    }); // 1 to 10, and the first of 0
  });

  it('count the pools without idle instances', async () => {
    const { supervisor, claim, pool } = await aSupervisor({ pool: { replicas: 1 } });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'one idle');
    await claim({ ...pool.owner, role: 'user', keyId: 'k' }, { poolName: pool.name });

    expect(new PoolStats(supervisor.pools).withoutIdle()).to.equal(1);
  });
});
