import { expect } from 'chai';
import fc from 'fast-check';
import { Mirror } from '../../src/model/mirror/mirror.ts';
import type { Version } from '../../src/model/mirror/mirror-terms.ts';
import { check } from './check.ts';
import { MirrorWorld, mirrorSteps, type MirrorStep } from './mirror-world.ts';
import { runs } from '../support/harness/runs.ts';

const isInOrder = (world: MirrorWorld): void => {
  const last = new Map<string, number>();
  for (const {
    type,
    record: { uid, revision },
  } of world.shown) {
    const before = last.get(uid) ?? 0;
    expect(revision, `${type} of ${uid} after it was shown at ${before}`).to.be.at.least(before);
    expect(before, `${type} of ${uid} after its end`).to.be.lessThan(Number.POSITIVE_INFINITY);
    last.set(uid, type === 'gone' ? Number.POSITIVE_INFINITY : revision);
  }
};

/** Objects shown as gone are gone. */
const isTrue = (world: MirrorWorld): void => {
  for (const {
    type,
    record: { uid },
  } of world.shown)
    if (type === 'gone')
      expect(world.endOf(uid), `${uid} is said to be gone`).to.not.equal(undefined);
};

/** Found once in a hundred thousand random runs. */
const FOUND: readonly (readonly [readonly MirrorStep[]])[] = [
  [
    // The creation's answer follows a list without the object.
    [
      ['create here', 1],
      ['unlabel', 1],
      ['list', 0],
      ['write', 1],
      ['begin read', 1],
      ['answer write', 0],
    ],
  ],
  [
    // The watch shows the object after it lost its label.
    [
      ['create', 0],
      ['list', 0],
      ['page', 0],
      ['begin read', 0],
      ['unlabel', 0],
      ['label', 0],
      ['remove', 0],
    ],
  ],
  [
    // Reads show it and its end before the watch shows its label.
    [
      ['list', 0],
      ['page', 0],
      ['create', 0],
      ['unlabel', 0],
      ['begin read', 0],
      ['read', 0],
      ['answer read', 0],
      ['begin read', 0],
      ['remove', 0],
    ],
  ],
];

describe('a mirror with watch events, lists, reads and its own writes in any order', () => {
  for (const labels of [false, true]) {
    it(`equals the store at the end, and neither restores nor loses objects${labels ? ', even if labels are removed' : ''}`, () => {
      check(
        fc.property(mirrorSteps, (steps) => {
          const world = new MirrorWorld(labels);
          world.mirror.onWentBack((why) => {
            throw new Error(`the store never went back: ${why}`);
          });
          for (const step of steps) {
            world.take(step);
            isTrue(world);
          }
          world.rest();
          isInOrder(world);
          isTrue(world);
          expect(world.mirrored).to.deep.equal(world.standing);
          expect([...world.mirror.doubted].sort()).to.deep.equal([...world.unwatched].sort());
          expect([...world.doubts]).to.include.members([...world.unwatched]);
          expect(world.mirror.size).to.equal(world.standing.size);
        }),
        { numRuns: runs(5_000), examples: [...FOUND] },
      );
    });
  }
});

const aVersion = (uid: string, revision: number): Version<string> => ({
  key: 'a',
  uid,
  revision: String(revision),
  record: `${uid}@${revision}`,
});
const aMirror = () => {
  const shown: string[] = [];
  const mirror = new Mirror<string>({
    report: ({ type, record }) => {
      shown.push(`${type} ${record}`);
    },
  });
  for (const _ of mirror.list().complete('10'));
  return { mirror, shown };
};

describe('a mirror', () => {
  it('does not restore an object whose end the watch reported during a read', () => {
    const { mirror, shown } = aMirror();
    mirror.told(aVersion('u', 11));
    mirror.advance('11');
    const found = mirror.read('a');
    mirror.toldGone(aVersion('u', 12));
    mirror.advance('12');
    found(aVersion('u', 11));
    expect(shown).to.deep.equal(['put u@11', 'gone u@12']);
  });

  it('keeps an object created during a read that found nothing', () => {
    const { mirror } = aMirror();
    const found = mirror.read('a');
    mirror.learn(aVersion('u', 11));
    found(undefined);
    expect(mirror.get('a')).to.equal('u@11');
  });

  it('detects a restored store by a read of an older revision', () => {
    const { mirror } = aMirror();
    const why: string[] = [];
    mirror.onWentBack((text) => {
      why.push(text);
    });
    mirror.told(aVersion('u', 11));
    mirror.read('a')(aVersion('u', 9));
    expect(why).to.deep.equal(['a went back from revision 11 to 9']);
  });

  it('detects a restored store by a read of an object that the watch skipped, and shows the object', () => {
    const { mirror, shown } = aMirror();
    const why: string[] = [];
    mirror.onWentBack((text) => {
      why.push(text);
      mirror.distrust();
    });
    mirror.read('a')(aVersion('u', 4));
    expect(why).to.deep.equal([
      'a has revision 4, which the watch did not report although it had passed 10',
    ]);
    expect(shown).to.deep.equal(['put u@4']);
  });

  it('detects a restored store by its own creation, and shows the object', () => {
    const { mirror, shown } = aMirror();
    const why: string[] = [];
    mirror.onWentBack((text) => {
      why.push(text);
      mirror.distrust();
    });
    const [passed, early] = [mirror.creates(), mirror.creates()];
    mirror.advance('12');
    passed({ ...aVersion('t', 11), key: 't' });
    expect(why, 'the watch passed it while its answer was on its way').to.deep.equal([]);
    early(aVersion('u', 4));
    expect(why).to.deep.equal(['an object created after revision 10 has revision 4']);
    expect(shown).to.deep.equal(['put u@4']);
  });

  it('marks all objects of a restored store as fresh until the list, from whichever source', () => {
    const told: string[] = [];
    const mirror = new Mirror<string>({
      report: ({ type, record, afresh }) => {
        told.push(`${type} ${record}${afresh ? ' afresh' : ''}`);
      },
    });
    for (const _ of mirror.list().complete('10'));
    const before = mirror.list();
    mirror.distrust();
    mirror.learn(aVersion('u', 4));
    before.put(aVersion('u', 4));
    for (const _ of before.complete('4'));
    mirror.learn({ ...aVersion('v', 5), key: 'v' });
    const list = mirror.list({ afresh: true });
    mirror.learn({ ...aVersion('w', 6), key: 'w' });
    for (const version of [
      aVersion('u', 4),
      { ...aVersion('v', 5), key: 'v' },
      { ...aVersion('w', 6), key: 'w' },
    ])
      list.put(version);
    for (const _ of list.complete('6'));
    mirror.told({ ...aVersion('x', 7), key: 'x' });
    expect(told).to.deep.equal([
      'put u@4 afresh',
      'put v@5 afresh',
      'put w@6 afresh',
      'put u@4 afresh',
      'put v@5 afresh',
      'put x@7',
    ]);
  });

  it('takes the current version of every object after a restore, and drops missing ones', () => {
    const { mirror, shown } = aMirror();
    mirror.told(aVersion('u', 11));
    mirror.told({ ...aVersion('v', 12), key: 'b' });
    const list = mirror.list({ afresh: true });
    list.put(aVersion('u', 4));
    for (const _ of list.complete('6'));
    expect([mirror.get('a'), mirror.get('b'), mirror.revision]).to.deep.equal([
      'u@4',
      undefined,
      '6',
    ]);
    expect(shown.slice(2)).to.deep.equal(['put u@4', 'gone v@12']);
  });
});
