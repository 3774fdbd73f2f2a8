import { expect } from 'chai';
import { Busy } from '../../src/actors/busy.ts';
import { RecentSet } from '../../src/model/recent-set.ts';
import { TestClock } from '../support/test-clock.ts';

describe('activity that goes on', () => {
  const aBusy = () => {
    const clock = new TestClock();
    const touched: string[] = [];
    return { clock, touched, busy: new Busy({ clock, touch: (id) => { touched.push(id); } }) };
  };

  it('is made known at once, and every five seconds while a command runs', () => {
    const { clock, touched, busy } = aBusy();
    busy.note('a', true);
    busy.note('b', false);
    expect(touched).to.deep.equal(['a', 'b']);
    clock.advance(5_000);
    clock.advance(5_000);
    expect(touched.slice(2)).to.deep.equal(['a', 'a']);
  });

  it('ends with the last command, and with the replica', () => {
    const { clock, touched, busy } = aBusy();
    busy.note('a', true);
    busy.note('a', false);
    clock.advance(20_000);
    expect(touched).to.have.lengthOf(2);
    busy.note('a', true);
    busy.stop();
    clock.advance(20_000);
    expect(touched).to.have.lengthOf(3);
  });
});

describe('a set of the most recent', () => {
  it('forgets the oldest, and counts what is added again as new', () => {
    const set = new RecentSet(2);
    for (const item of ['a', 'b', 'a', 'c']) set.add(item);
    expect(['a', 'b', 'c'].map((item) => set.has(item))).to.deep.equal([true, false, true]);
    set.delete('c');
    expect(set.has('c')).to.equal(false);
  });
});
