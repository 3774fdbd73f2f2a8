import { expect } from 'chai';
import { RecentSet } from '../../src/lib/recent-set.ts';

describe('a recent set', () => {
  it('drops the oldest, and counts a repeated entry as new', () => {
    const set = new RecentSet(2);
    for (const item of ['a', 'b', 'a', 'c']) set.add(item);
    expect(['a', 'b', 'c'].map((item) => set.has(item))).to.deep.equal([true, false, true]);
    set.delete('c');
    expect(set.has('c')).to.equal(false);
  });
});
