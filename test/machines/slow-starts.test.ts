import { expect } from 'chai';
import { ALICE } from './examples.ts';
import { PROBED, SlowMachine } from './slow-machine.ts';

/** Interpreters on two processors: 4 s of work each, 30 s to become ready. */
const INTERPRETERS = {
  ...{ processors: 2, workMs: 4_000, startupTimeoutMs: 30_000 },
  places: { first: 5, most: 256 },
};
const { places: _, ...ON_A_CLUSTER } = INTERPRETERS;
const ROOMY = { ...INTERPRETERS, processors: 64 };
const BOB = { ...ALICE, user: 'bob' };
const NEVER_READY = { workMs: Number.POSITIVE_INFINITY };

describe('pools whose instances are slow to become ready on a busy machine', () => {
  it('fill in the time that the work takes, without a failed start', () => {
    const machine = new SlowMachine(INTERPRETERS, [{ replicas: 20 }]);

    expect(machine.filledAfterMs(120_000)).to.be.at.most(45_000);
    expect(machine.failed).to.equal(0);
  });

  it('start fewer instances at once after too many started together', () => {
    const machine = new SlowMachine(ON_A_CLUSTER, [{ replicas: 24 }]);

    expect(machine.filledAfterMs(180_000)).to.be.at.most(100_000);
    expect(machine.failed).to.be.within(1, 30);
  });

  it('share the machine, and together fill in the time that the work takes', () => {
    const pools = Array.from({ length: 15 }, () => ({ replicas: 4 }));
    const machine = new SlowMachine(INTERPRETERS, pools);

    expect(machine.filledAfterMs(600_000)).to.be.at.most(130_000);
    expect(machine.failed).to.equal(0);
  });

  it('fill at once on a machine with room', () => {
    const roomy = { ...ROOMY, places: { first: 129, most: 256 } };
    const unprobed = new SlowMachine(roomy, [{ replicas: 32, definition: PROBED.without }]);
    const probed = new SlowMachine(roomy, [{ replicas: 32 }]);

    expect(unprobed.filledAfterMs(60_000)).to.be.at.most(INTERPRETERS.workMs + 2_000);
    expect(probed.filledAfterMs(60_000)).to.be.at.most(5 * INTERPRETERS.workMs);
    expect(unprobed.failed + probed.failed).to.equal(0);
  });

  it("do not wait for another tenant's instances that never become ready", () => {
    const hung = Array.from({ length: 10 }, () => ({ ...NEVER_READY, replicas: 4 }));
    const pool = { replicas: 4, owner: BOB, fromMs: 10_000 };
    const machine = new SlowMachine(ROOMY, [...hung, pool]);

    const filledAfterMs = machine.filledAfterMs(600_000, [hung.length]) - pool.fromMs;
    expect(filledAfterMs).to.be.at.most(5 * INTERPRETERS.workMs);
  });

  it("wait only briefly for their owner's other pools with very slow starts", () => {
    const hung = { ...NEVER_READY, replicas: 10 };
    const machine = new SlowMachine({ ...ROOMY, startupTimeoutMs: 3_600_000 }, [
      ...[hung, hung],
      { replicas: 4, fromMs: 10_000 },
    ]);

    expect(machine.filledAfterMs(3_600_000, [2])).to.be.at.most(140_000);
  });

  it('start as many at once as before after a single failure', () => {
    const hung = { ...NEVER_READY, replicas: 1 };
    const pool = { replicas: 4, owner: BOB, fromMs: 35_000 };
    const machine = new SlowMachine(ROOMY, [hung, pool]);

    const filledAfterMs = machine.filledAfterMs(600_000, [1]) - pool.fromMs;
    expect(machine.failed).to.equal(1);
    expect(filledAfterMs).to.be.at.most(2 * INTERPRETERS.workMs);
  });
});
