import { expect } from 'chai';
import { FakeClock } from '../support/chaos/faults/clock-jump.ts';
import {
  FLEET_FAULTS,
  FleetFaultPlan,
  type FleetVictims,
} from '../support/chaos/fleet/fleet-faults.ts';
import { FaultProxy } from '../support/harness/fault-proxy.ts';

const nobody = async (): Promise<never> => {
  throw new Error('nothing may befall anybody here');
};
const process = {
  ...{ kill: nobody, end: nobody, start: nobody, restart: nobody, stop: nobody },
  signal: () => undefined,
};

describe('a plan of faults of a fleet', () => {
  let clock: FakeClock;
  let victims: FleetVictims;

  beforeEach(() => {
    clock = new FakeClock();
    victims = {
      managers: ['m0', 'm1', 'm2'].map((name) => ({ clock, replica: { ...process, name } })),
      workers: ['w1', 'w2'].map((clusterId) => ({
        ...{ ...process, clusterId },
        ways: [0, 1, 2].map(() => new FaultProxy({ host: '127.0.0.1', port: 1 })),
      })),
    };
  });
  afterEach(() => {
    clock.remove();
  });

  const kindsOf = (count: number, kinds?: readonly string[]): readonly string[] => {
    const plan = new FleetFaultPlan(victims, {
      ...{ seed: 1, longestMs: 1_000 },
      ...(kinds ? { kinds } : {}),
    });
    return Array.from({ length: count }, () => plan.next(2))
      .flat()
      .map(({ fault }) => fault.kind);
  };

  it('has each kind, by the name that chooses it', () => {
    expect([...new Set(kindsOf(300))].toSorted()).to.deep.equal(FLEET_FAULTS.toSorted());
    expect(FLEET_FAULTS.filter((kind) => kind.includes(','))).to.deep.equal([]);
  });

  it('has only the kinds that it is told', () => {
    const kinds = ['link cut', 'stop worker'];
    expect(new Set(kindsOf(100, kinds))).to.deep.equal(new Set(kinds));
    expect(new Set(kindsOf(100, ['link cut']))).to.deep.equal(new Set(['link cut']));
  });

  it('names the kinds there are where it is given another', () => {
    expect(() => kindsOf(1, ['link cut', 'flood'])).to.throw(
      'there is no fault "flood"; there are: link cut, ',
    );
  });
});
