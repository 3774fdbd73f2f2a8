import { expect } from 'chai';
import fc from 'fast-check';
import { newestOf, OrderedIndex } from '../../src/lib/ordered-index.ts';
import { OwnedIndex } from '../../src/actors/runtime/record-mirror.ts';
import type { Placement } from '../../src/actors/sandbox/sandbox-snapshot.ts';
import type { LiveFilter } from '../../src/actors/sandbox/live-lists.ts';
import { SandboxIndex, UNCLAIMED } from '../../src/actors/sandbox/sandbox-index.ts';
import { SANDBOX_STATUSES } from '../../src/model/sandbox.ts';
import { aPool } from '../support/builders/a-pool.ts';
import { runs } from '../support/harness/runs.ts';

const IDLE = {
  status: 'Idle' as const,
  poolUid: 'p',
  poolName: 'p',
  updateRevision: 'r1',
  owner: { namespace: 'n', team: 't', user: 'u' },
  createdAt: 1,
  claimedAt: undefined,
};

const RUNS = { numRuns: runs(1_000) } as const;

const byTime = (a: { at: number; id: string }, b: { at: number; id: string }): number =>
  a.at - b.at || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);

describe('an ordered index', () => {
  it('holds the same as a sorted list, whatever is added and removed', () => {
    const entry = fc.record({
      at: fc.integer({ min: 0, max: 20 }),
      id: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    });
    const steps = fc.array(fc.record({ add: fc.boolean(), entry }), { maxLength: 60 });
    fc.assert(
      fc.property(
        steps,
        fc.nat(5),
        fc.nat(5),
        fc.constantFrom(2, 3, 512),
        (steps, offset, limit, mostInBlock) => {
          const index = new OrderedIndex(mostInBlock);
          let model: { at: number; id: string }[] = [];
          for (const step of steps) {
            const there = model.some((other) => byTime(other, step.entry) === 0);
            if (step.add) {
              index.add(step.entry);
              if (!there) model = [...model, step.entry].sort(byTime);
            } else {
              expect(index.remove(step.entry)).to.equal(there);
              model = model.filter((other) => byTime(other, step.entry) !== 0);
            }
            expect(index.ids(Infinity)).to.deep.equal(model.map(({ id }) => id));
            expect(index.first()?.id).to.equal(model[0]?.id);
          }
          expect(index.newest(offset, limit)).to.deep.equal(
            model
              .map(({ id }) => id)
              .reverse()
              .slice(offset, offset + limit),
          );
          expect(index.ids(limit)).to.deep.equal(model.map(({ id }) => id).slice(0, limit));
          const among = { at: 10, id: 'c' };
          expect(index.newerThan(among)).to.equal(
            model.filter((other) => byTime(other, among) > 0).length,
          );
          expect(index.size).to.equal(model.length);
        },
      ),
      RUNS,
    );
  });
});

describe('a page of merged indexes', () => {
  it('equals a slice of the sorted list, at any offset', () => {
    const moments = fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 60 });
    fc.assert(
      fc.property(
        fc.array(moments, { maxLength: 4 }),
        fc.nat(250),
        fc.nat(20),
        (all, offset, limit) => {
          const indexes = all.map(() => new OrderedIndex(3));
          const model = all.flatMap((own, of) =>
            own.map((at, n) => ({ at, id: `${of}-${n}`, of })),
          );
          for (const { of, ...entry } of model) indexes[of]?.add(entry);
          expect(newestOf(indexes, offset, limit)).to.deep.equal(
            model
              .sort(byTime)
              .reverse()
              .slice(offset, offset + limit)
              .map(({ id }) => id),
          );
        },
      ),
      RUNS,
    );
  });

  it('does not read the entries before it, however many there are', () => {
    const EACH = 20_000;
    const indexes = [new OrderedIndex(), new OrderedIndex()];
    let reads = 0;
    for (let n = 0; n < 2 * EACH; n++)
      indexes[n % 2]?.add({
        id: String(n).padStart(6, '0'),
        get at() {
          reads += 1;
          return 1_700_000_000_000 + n * 1_000;
        },
      });
    reads = 0;

    expect(newestOf(indexes, 2 * EACH - 3, 2)).to.deep.equal(['000002', '000001']);

    expect(reads).to.be.below(EACH / 4);
  });
});

const placement = fc
  .record({
    id: fc.constantFrom('i1', 'i2', 'i3', 'i4', 'i5', 'i6'),
    status: fc.constantFrom(...SANDBOX_STATUSES),
    pool: fc.constantFrom('p', 'p2', 'q'),
    owner: fc.constantFrom(
      { namespace: 'n', team: 't', user: 'u' },
      { namespace: 'n', team: 't', user: 'v' },
      { namespace: 'm', team: 's', user: 'u' },
    ),
    createdAt: fc.integer({ min: 0, max: 5 }),
    claimedAt: fc.option(fc.integer({ min: 6, max: 9 }), { nil: undefined }),
    availableAt: fc.option(fc.integer({ min: 3, max: 5 }), { nil: undefined }),
  })
  .map(({ pool, ...rest }): Placement => ({
    ...rest,
    poolUid: pool,
    poolName: pool.slice(0, 1),
    updateRevision: rest.id < 'i4' ? 'r0' : 'r1',
  }));

const step = fc.oneof(
  { weight: 6, arbitrary: placement.map((value) => ({ kind: 'place' as const, value })) },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom('i1', 'i2', 'i3')
      .map((value) => ({ kind: 'remove' as const, value })),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom('p', 'q').map((value) => ({ kind: 'take' as const, value })),
  },
);

const matches = (filter: LiveFilter, at: Placement): boolean =>
  (filter.namespace ?? at.owner.namespace) === at.owner.namespace &&
  (filter.team ?? at.owner.team) === at.owner.team &&
  (filter.user ?? at.owner.user) === at.owner.user &&
  (filter.poolUid ?? at.poolUid) === at.poolUid &&
  (filter.poolName ?? at.poolName) === at.poolName &&
  (filter.phase === undefined ? at.claimedAt !== undefined : filter.phase === at.status) &&
  at.status !== 'Completed';

describe('the index of sandboxes', () => {
  it('lists and counts the same as a full search, whatever moves where', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const index = new SandboxIndex();
        const model = new Map<string, Placement>();
        for (const { kind, value } of steps) {
          if (kind === 'place') {
            const before = model.get(value.id);
            expect(index.place(value)).to.deep.equal(before);
            model.set(value.id, value);
          } else if (kind === 'remove') {
            index.remove(value);
            model.delete(value);
          } else {
            const id = index.acquire(value, 'r1');
            if (id !== undefined) index.release(value, id);
          }
        }
        const live = [...model.values()].filter(({ status }) => status !== 'Completed');
        const countsOf = (names: readonly string[]) =>
          new Map(
            [...new Set(names)].map((name) => [
              name,
              names.filter((other) => other === name).length,
            ]),
          );
        const { byStatus, byNamespace } = index.counts();
        expect(byStatus).to.deep.equal(countsOf(live.map(({ status }) => status)));
        expect(byNamespace).to.deep.equal(countsOf(live.map(({ owner }) => owner.namespace)));
        for (const [namespace, team, user] of [
          ['n', 't', 'u'],
          ['n', 't', undefined],
          [undefined, undefined, undefined],
          [undefined, 't', undefined],
          [undefined, undefined, 'u'],
          ['n', undefined, 'v'],
        ]) {
          for (const pool of [
            {},
            { poolName: 'p' },
            ...(namespace === undefined ? [] : [{ poolName: 'p', poolUid: 'p2' }]),
          ]) {
            for (const phase of [
              undefined,
              'Idle',
              'Running',
              'Starting',
              'Stopping',
              'Failed',
            ] as const) {
              const filter: LiveFilter = {
                ...(namespace === undefined ? {} : { namespace }),
                ...(team === undefined ? {} : { team }),
                ...(user === undefined ? {} : { user }),
                ...pool,
                ...(phase ? { phase } : {}),
              };
              const expected = [...model.values()]
                .filter((at) => matches(filter, at))
                .sort((a, b) =>
                  byTime(
                    { at: b.claimedAt ?? b.createdAt, id: b.id },
                    { at: a.claimedAt ?? a.createdAt, id: a.id },
                  ),
                )
                .map(({ id }) => id);
              expect(index.list(filter, 0, 100)).to.deep.equal({
                ids: expected,
                total: expected.length,
              });
            }
          }
        }
      }),
      RUNS,
    );
  });

  it('hands each idle instance to one taker, the longest idle first, until it is released', () => {
    const index = new SandboxIndex();
    index.place({ ...IDLE, id: 'late', availableAt: 9 });
    index.place({ ...IDLE, id: 'early', availableAt: 3 });
    expect([
      index.acquire('p', 'r1'),
      index.acquire('p', 'r1'),
      index.acquire('p', 'r1'),
    ]).to.deep.equal(['early', 'late', undefined]);
    index.release('p', 'late');
    expect(index.nextIdle('p', 'r1')).to.equal('late');
    expect(index.acquire('p', 'r1')).to.equal('late');
    expect(index.dismissable('p', 'r1', 10)).to.deep.equal([]);
  });

  it('never releases an instance that a claim took, even if its process is gone', () => {
    const index = new SandboxIndex();
    index.place({ ...IDLE, id: 'taken', availableAt: 3 });
    index.acquire('p', 'r1');
    index.place({ ...IDLE, id: 'taken', availableAt: undefined });
    expect(index.dismissable('p', 'r1', 10)).to.deep.equal([]);

    index.release('p', 'taken');
    expect(index.dismissable('p', 'r1', 10)).to.deep.equal(['taken']);
  });

  it('finds the latest claim of a key, and no returned one, in any order of reports', () => {
    const base = { ...IDLE, claimedAt: 2, availableAt: undefined };
    const first = { ...base, id: 'first', status: 'Running' as const, mark: 'key' };
    const givenBack = { ...first, status: 'Stopping' as const, mark: undefined };
    const later = { ...first, id: 'later' };
    const known = (...told: readonly Placement[]): SandboxIndex => {
      const index = new SandboxIndex();
      for (const placement of told) index.place(placement);
      return index;
    };
    const found = (...told: readonly Placement[]): string | undefined => {
      const index = known(...told);
      index.remove('first');
      return index.claimMarks.find('key');
    };
    // Its process was heard to be gone before its record said why.
    const gone = { ...first, status: 'Stopping' as const };

    for (const told of [
      [first, givenBack],
      [first, gone, givenBack],
    ])
      expect(known(...told).claimMarks.find('key')).to.equal(undefined);
    for (const told of [
      [first, givenBack, later],
      [first, later, givenBack],
      [later, givenBack],
    ])
      expect(found(...told)).to.equal('later');
  });

  it('reserves an acquired instance until its claim releases it, wherever it moves', () => {
    const base = { ...IDLE, availableAt: 1 };
    const elsewhere = [
      { ...base, availableAt: undefined },
      { ...base, status: 'Stopping' as const },
      { ...base, status: 'Running' as const, claimedAt: 2 },
      'gone' as const,
    ];
    for (const there of elsewhere) {
      const index = new SandboxIndex();
      index.place({ ...base, id: 'held' });
      index.acquire('p', 'r1');
      if (there === 'gone') index.remove('held');
      else index.place({ ...there, id: 'held' });
      index.place({ ...base, id: 'held' });

      expect([index.isHeld('held'), index.heldOf('p'), index.acquire('p', 'r1')]).to.deep.equal([
        true,
        'held',
        undefined,
      ]);
      expect(index.release('p', 'held')).to.equal(true);
      expect([index.isHeld('held'), index.heldOf('p'), index.acquire('p', 'r1')]).to.deep.equal([
        false,
        undefined,
        'held',
      ]);
    }
  });

  it('does not wait for a reserved instance that is gone', () => {
    const index = new SandboxIndex();
    index.place({ ...IDLE, id: 'held', availableAt: 1 });
    index.acquire('p', 'r1');
    index.remove('held');
    expect([index.isHeld('held'), index.heldOf('p')]).to.deep.equal([false, undefined]);
    expect([index.release('p', 'held'), index.release('p', 'held')]).to.deep.equal([false, false]);
    expect(index.poolUids()).to.deep.equal([]);
  });

  describe('during a rollout', () => {
    const standing = (): SandboxIndex => {
      const index = new SandboxIndex();
      for (const updateRevision of ['r0', 'r1']) {
        index.place({
          ...IDLE,
          id: `idle ${updateRevision}`,
          status: 'Idle',
          updateRevision,
          availableAt: updateRevision === 'r0' ? 3 : 9,
        });
        index.place({
          ...IDLE,
          id: `unavailable ${updateRevision}`,
          status: 'Idle',
          updateRevision,
          availableAt: undefined,
        });
        index.place({
          ...IDLE,
          id: `starting ${updateRevision}`,
          status: 'Starting',
          updateRevision,
          availableAt: undefined,
        });
      }
      return index;
    };

    it('hands out the current revision first, however long others have been idle', () => {
      const index = standing();
      expect([
        index.acquire('p', 'r1'),
        index.acquire('p', 'r1'),
        index.acquire('p', 'r1'),
      ]).to.deep.equal(['idle r1', 'idle r0', undefined]);
    });

    it('hands out the longest idle instance of several older revisions', () => {
      expect(standing().acquire('p', 'r2')).to.equal('idle r0');
    });

    it('retires starting instances first, then unavailable, then idle ones, and older revisions first', () => {
      expect(standing().dismissable('p', 'r1', 10)).to.deep.equal([
        'starting r0',
        'starting r1',
        'unavailable r0',
        'unavailable r1',
        'idle r0',
        'idle r1',
      ]);
    });

    it('finds the instances of other revisions', () => {
      expect(UNCLAIMED.map((as) => standing().stale('p', 'r1', { as, most: 9 }))).to.deep.equal([
        ['starting r0'],
        ['unavailable r0'],
        ['idle r0'],
      ]);
      expect(standing().stale('p', 'r2', { as: 'idle', most: 1 })).to.have.length(1);
    });
  });

  it('forgets removed sandboxes completely', () => {
    const index = new SandboxIndex();
    index.place({ ...IDLE, id: 'i', status: 'Running', claimedAt: 2, availableAt: 1 });
    index.remove('i');
    expect(index.size).to.equal(0);
    expect(index.list({}, 0, 10).total).to.equal(0);
    expect(index.claimedIn('p', 10)).to.deep.equal([]);
  });
});

describe('the index of pools', () => {
  it('finds a pool by namespace and name, and reports a name in another namespace', () => {
    const index = new OwnedIndex();
    const mine = { ...aPool({ uid: 'u1', name: 'a' }), revision: '1' };
    const theirs = {
      ...aPool({ uid: 'u2', name: 'b', owner: { namespace: 'beta', team: 'beta', user: 'bob' } }),
      revision: '1',
    };
    index.add(mine);
    index.add(theirs);
    expect(index.uidOf('alpha', 'a')).to.equal('u1');
    expect(index.uidOf('alpha', 'b')).to.equal(undefined);
    expect(index.existsAnywhere('b')).to.equal(true);
    expect(index.list(mine.owner, 0, 10)).to.deep.equal({ ids: ['u1'], total: 1 });
    index.remove(theirs);
    expect(index.existsAnywhere('b')).to.equal(false);
    expect(index.list(undefined, 0, 10).total).to.equal(1);
  });
});
