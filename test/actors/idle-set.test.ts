import { expect } from 'chai';
import { v7 } from 'uuid';
import { ALL_BUCKETS, bucketOf, IdleSet, OwnBuckets } from '../../src/actors/sandbox/idle-set.ts';

describe('the idle instances of a pool', () => {
  const entries = Array.from({ length: 200 }, (_, n) => ({ at: (n * 37) % 200, id: v7() }));
  const filled = (): IdleSet => {
    const shelf = new IdleSet();
    for (const entry of entries) shelf.add(entry);
    return shelf;
  };
  const byAge = [...entries].sort((a, b) => a.at - b.at);

  it('are given the longest idle first', () => {
    const shelf = filled();
    expect(shelf.ids(Infinity)).to.deep.equal(byAge.map(({ id }) => id));
    expect(shelf.ids(3)).to.deep.equal(byAge.slice(0, 3).map(({ id }) => id));
    for (const entry of byAge) {
      expect(shelf.first(ALL_BUCKETS)).to.equal(entry);
      shelf.remove(entry);
    }
    expect(shelf.first(ALL_BUCKETS)).to.equal(undefined);
    expect(shelf.size).to.equal(0);
  });

  it('count once, however often they are added and removed', () => {
    const shelf = filled();
    for (const entry of entries) shelf.add(entry);
    expect(shelf.size).to.equal(200);
    for (const entry of [...entries, ...entries]) shelf.remove(entry);
    expect(shelf.size).to.equal(0);
  });

  it('are given by bucket, and once those are empty from any other', () => {
    const shelf = filled();
    const preferred = [1, 2, 3];
    const mine = byAge.filter(({ id }) => preferred.includes(bucketOf(id)));
    for (const entry of mine) {
      expect(shelf.first(preferred)).to.equal(entry);
      shelf.remove(entry);
    }
    expect(shelf.first(preferred)).to.equal(byAge.find((entry) => !mine.includes(entry)));
  });
});

describe('the buckets of a replica', () => {
  it('are all of them where it is alone', () => {
    expect(new OwnBuckets('one', () => ['one']).get()).to.deep.equal(ALL_BUCKETS);
  });

  it('are each of one replica, and move to the others when it goes', () => {
    let live = ['one', 'two', 'three'];
    const [one, two, three] = ['one', 'two', 'three'].map(
      (name) => new OwnBuckets(name, () => live),
    );
    const sharedBy = (...owners: readonly (OwnBuckets | undefined)[]) =>
      owners.flatMap((each) => each?.get() ?? []).sort((a, b) => a - b);
    expect(sharedBy(one, two, three)).to.deep.equal(ALL_BUCKETS);
    expect(one?.get()).to.have.length.within(10, 35);
    const before = two?.get() ?? [];

    live = ['one', 'two'];

    expect(sharedBy(one, two)).to.deep.equal(ALL_BUCKETS);
    expect(two?.get()).to.include.members([...before]);
  });
});
