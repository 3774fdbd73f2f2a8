import { expect } from 'chai';
import { v7 } from 'uuid';
import { ALL_BUCKETS, bucketOf, IdleSet } from '../../src/actors/sandbox/sandbox-index.ts';
import { OwnBuckets } from '../../src/actors/sandbox/idle-instances.ts';

describe('the idle instances of a pool', () => {
  const entries = Array.from({ length: 200 }, (_, n) => ({ at: (n * 37) % 200, id: v7() }));
  const filled = (): IdleSet => {
    const idle = new IdleSet();
    for (const entry of entries) idle.add(entry);
    return idle;
  };
  const byAge = [...entries].sort((a, b) => a.at - b.at);

  it('are handed out longest idle first', () => {
    const idle = filled();
    expect(idle.ids(Infinity)).to.deep.equal(byAge.map(({ id }) => id));
    expect(idle.ids(3)).to.deep.equal(byAge.slice(0, 3).map(({ id }) => id));
    for (const entry of byAge) {
      expect(idle.first(ALL_BUCKETS)).to.equal(entry);
      idle.remove(entry);
    }
    expect(idle.first(ALL_BUCKETS)).to.equal(undefined);
    expect(idle.size).to.equal(0);
  });

  it('count once, however often they are added and removed', () => {
    const idle = filled();
    for (const entry of entries) idle.add(entry);
    expect(idle.size).to.equal(200);
    for (const entry of [...entries, ...entries]) idle.remove(entry);
    expect(idle.size).to.equal(0);
  });

  it("come from the replica's own buckets first, then from others", () => {
    const idle = filled();
    const preferred = [1, 2, 3];
    const mine = byAge.filter(({ id }) => preferred.includes(bucketOf(id)));
    for (const entry of mine) {
      expect(idle.first(preferred)).to.equal(entry);
      idle.remove(entry);
    }
    expect(idle.first(preferred)).to.equal(byAge.find((entry) => !mine.includes(entry)));
  });
});

describe('the buckets of a replica', () => {
  it('are all buckets if it is the only one', () => {
    expect(new OwnBuckets('one', () => ['one']).get()).to.deep.equal(ALL_BUCKETS);
  });

  it('belong to one replica each, and move to the others when it goes', () => {
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
