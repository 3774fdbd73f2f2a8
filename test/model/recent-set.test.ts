import { expect } from 'chai';
import { RecentSet } from '../../src/lib/recent-set.ts';

describe('a set of the most recent', () => {
  it('forgets the oldest, and counts what is added again as new', () => {
    const set = new RecentSet(2);
    for (const item of ['a', 'b', 'a', 'c']) set.add(item);
    expect(['a', 'b', 'c'].map((item) => set.has(item))).to.deep.equal([true, false, true]);
    set.delete('c');
    expect(set.has('c')).to.equal(false);
  });
});
