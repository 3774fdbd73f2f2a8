import { expect } from 'chai';
import * as fc from 'fast-check';
import { MemberWatch } from '../../src/actors/env/copy-mirror.ts';
import type { CopiedMember } from '../../src/model/envs/env-copy.ts';

const aMember = (idle: number): CopiedMember => ({
  name: 'm',
  config: {},
  state: 'Active',
  idle,
  running: 0,
  desired: idle,
  current: idle,
  pending: 0,
  headroom: 0,
  updated: idle,
});

describe('the observed state of a remote member', () => {
  it('counts instances idle for at least a time, assuming that the youngest go first', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(40), { maxLength: 60 }), fc.nat(60), (counts, forMs) => {
        const watch = new MemberWatch();
        const since: number[] = [];
        counts.forEach((idle, now) => {
          watch.saw(aMember(idle), now);
          since.length = Math.min(since.length, idle);
          while (since.length < idle) since.push(now);
        });
        const now = counts.length;
        expect(watch.settled(forMs, now)).to.equal(
          since.filter((each) => each <= now - forMs).length,
        );
      }),
    );
  });

  it('takes bounded memory, however many instances a cluster reports', () => {
    const watch = new MemberWatch();
    watch.saw(aMember(2 ** 52), 1);
    expect(watch.settled(1, 2)).to.equal(2 ** 52);
    for (let now = 2; now < 1_000; now += 1) watch.saw(aMember(2 ** 52 + now), now);
    expect(watch.settled(0, 1_000)).to.equal(2 ** 52 + 999);
    expect(watch.settled(2, 1_000)).to.be.lessThan(2 ** 52 + 999);
    watch.saw(aMember(3), 1_001);
    expect(watch.settled(1_000, 1_001)).to.equal(3);
  });
});
