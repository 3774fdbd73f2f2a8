import { expect } from 'chai';
import { COSTS, planOf } from '../../script/capacity-plan.ts';

const demand = {
  sandboxes: 100_000,
  life: 1_000,
  idle: 0,
  replicas: 2,
  pods: 50_000,
  retention: 100,
  use: 1,
  writes: 1_000,
};

describe('the capacity of a fleet', () => {
  it('is by hand what it is by the script', () => {
    const plan = planOf(demand);

    expect(plan).to.include({ clusters: 2, instances: 50_000, claims: 50, writes: 400 });
    expect(plan.controlCores).to.be.closeTo(50 * 0.0202, 1e-9);
    expect(plan.daemonCores).to.be.closeTo(50 * 0.00476 + 2 * 400 * 0.00015, 1e-9);
    expect(plan.replicaCores).to.be.closeTo(plan.daemonCores / 2, 1e-9);
    expect(plan.redisMemory * 1024).to.be.closeTo(50 * 100 * COSTS.history, 1e-9);
    expect(plan.misfits).to.deep.equal([]);
  });

  it('says what does not fit', () => {
    const { misfits } = planOf({ ...demand, life: 100, writes: 3_999 });

    expect(misfits).to.deep.equal([
      'a replica needs 1.8 cores, and its event loop has one',
      '4000 writes a second are more than the 3999 that a cluster is taken to bear',
    ]);
  });
});
