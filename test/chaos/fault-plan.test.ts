import { expect } from 'chai';
import type { Victims } from '../support/chaos/fault-makers.ts';
import { FAULT_KINDS, FaultPlan } from '../support/chaos/fault-plan.ts';
import { FakeClock } from '../support/chaos/faults/clock-jump.ts';
import type { Strike } from '../support/chaos/strike.ts';
import { FaultProxy } from '../support/harness/fault-proxy.ts';

const nobody = async (): Promise<never> => {
  throw new Error('nothing may befall anybody here');
};

describe('a fault plan', () => {
  let clocks: FakeClock[];
  let victims: Victims;

  beforeEach(() => {
    clocks = [0, 1, 2].map(() => new FakeClock());
    victims = {
      contenders: clocks.map((clock) => ({
        clock,
        toApi: new FaultProxy({ host: '127.0.0.1', port: 1 }),
        toRedis: new FaultProxy({ host: '127.0.0.1', port: 1 }),
        replica: {
          kill: nobody,
          start: nobody,
          stop: nobody,
          signal: () => undefined,
          isRunning: true,
        },
      })),
      controlPlane: {
        kubectl: nobody,
        kubectlAs: nobody,
        kill: nobody,
        begin: nobody,
        apply: nobody,
      },
      redis: {
        kill: nobody,
        restart: nobody,
        signal: () => undefined,
        keepCopy: () => undefined,
        restartFromCopy: nobody,
        client: { flushall: nobody },
      },
      store: { keepCopy: nobody, restore: nobody },
      passing: { namespace: 'green', renew: nobody },
      filled: { resize: nobody, leader: nobody },
      namespaces: ['red', 'blue'],
    };
  });
  afterEach(() => {
    for (const clock of clocks) clock.remove();
  });

  const strikes = (seed: number, count: number): readonly Strike[] => {
    const plan = new FaultPlan(victims, { seed });
    return Array.from({ length: count }, () => plan.next(3));
  };
  const told = (all: readonly Strike[]): unknown =>
    all.map((one) =>
      one.map(({ fault: { kind, victim, lastsMs }, afterMs }) => ({
        kind,
        victim,
        lastsMs,
        afterMs,
      })),
    );

  it('is the same for the same seed, and different for another', () => {
    expect(told(strikes(7, 40))).to.deep.equal(told(strikes(7, 40)));
    expect(told(strikes(7, 40))).to.not.deep.equal(told(strikes(8, 40)));
  });

  it('has every kind, some alone and some overlapping', () => {
    const all = strikes(1, 300);
    const kindsOf = (some: readonly Strike[]) =>
      new Set(some.flat().map(({ fault }) => fault.kind.replace(/^link .*/, 'link')));
    const alone = kindsOf(all.filter(({ length }) => length === 1));
    expect(alone.size).to.equal(FAULT_KINDS.length - 1); // both links are told alike
    // which nothing may be beside
    const withOthers = [...alone].filter((kind) => kind !== 'etcd restored');
    expect(kindsOf(all.filter(({ length }) => length > 1))).to.deep.equal(new Set(withOthers));
  });

  it('never has two simultaneous faults of one replica or of Redis', () => {
    for (const one of strikes(3, 300)) {
      const all = one.flatMap(({ fault: { victim, also = [] } }) => [victim, ...also]);
      expect(new Set(all)).to.have.property('size', all.length);
    }
  });
});
