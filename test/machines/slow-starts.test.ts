import { expect } from 'chai';
import { PROBED, SlowMachine } from './slow-machine.ts';

/** 20 interpreters on two processors: 4 s of work each, 30 s to become ready. */
const INTERPRETERS = { processors: 2, workMs: 4_000, startupTimeoutMs: 30_000 };

describe('pools whose instances are slow to become ready on a busy machine', () => {
  it('fill in the time that their work takes, and no start fails', () => {
    const machine = new SlowMachine(INTERPRETERS, [{ replicas: 20 }]);

    expect(machine.filledAfterMs(120_000)).to.be.at.most(45_000);
    expect(machine.failed).to.equal(0);
  });

  it('start fewer at once after too many started together', () => {
    const refill = { probedInFlight: undefined };
    const machine = new SlowMachine(INTERPRETERS, [{ replicas: 24, refill }]);

    expect(machine.filledAfterMs(180_000)).to.be.at.most(100_000);
    expect(machine.failed).to.be.within(1, 30);
  });

  it('all fill if many pools start together', () => {
    const pools = Array.from({ length: 15 }, () => ({ replicas: 4 }));
    const machine = new SlowMachine(INTERPRETERS, pools);

    expect(machine.filledAfterMs(600_000)).to.be.at.most(300_000);
  });

  it('fill at once where the machine has room', () => {
    const roomy = { ...INTERPRETERS, processors: 64 };
    const unprobed = new SlowMachine(roomy, [{ replicas: 32, definition: PROBED.without }]);
    const probed = new SlowMachine(roomy, [{ replicas: 32 }]);

    expect(unprobed.filledAfterMs(60_000)).to.be.at.most(INTERPRETERS.workMs + 2_000);
    expect(probed.filledAfterMs(60_000)).to.be.at.most(5 * INTERPRETERS.workMs);
    expect(unprobed.failed + probed.failed).to.equal(0);
  });
});
