import { expect } from 'chai';
import fc from 'fast-check';
import type { Placement } from '../../src/actors/sandbox/sandbox-snapshot.ts';
import type { LiveFilter } from '../../src/actors/sandbox/live-lists.ts';
import { SandboxIndex } from '../../src/actors/sandbox/sandbox-index.ts';
import { hasPairs } from '../../src/model/claim-terms.ts';
import { runs } from '../support/harness/runs.ts';

const OWNERS = ['alice', 'bob'].map((user) => ({ namespace: 'alpha', team: 'alpha', user }));

const placed = (id: string, part: Partial<Placement> = {}): Placement => ({
  id,
  status: 'Running',
  poolUid: 'p',
  poolName: 'default',
  updateRevision: 'r1',
  owner: OWNERS[0]!, // there are two
  createdAt: 0,
  claimedAt: 1,
  availableAt: 1,
  ...part,
});

describe('the metadata index of sandboxes', () => {
  it('lists newest first, in pages, with the total', () => {
    const index = new SandboxIndex();
    for (let at = 0; at < 5; at++)
      index.place(placed(`i${at}`, { claimedAt: at, metadata: { job: '42', at: String(at) } }));
    index.place(placed('other', { metadata: { job: '7' } }));
    const filter = { ...OWNERS[0], metadata: { job: '42' } };

    expect(index.list(filter, 1, 2)).to.deep.equal({ ids: ['i3', 'i2'], total: 5 });
    expect(index.list({ ...filter, metadata: { job: '42', at: '3' } }, 0, 9)).to.deep.equal({
      ids: ['i3'],
      total: 1,
    });
    expect(index.list({ ...filter, metadata: { job: '42', at: '9' } }, 0, 9).total).to.equal(0);
    expect(index.list({ metadata: { toString: 'x' } }, 0, 9).total).to.equal(0);
  });

  it('forgets a sandbox at any position', () => {
    const index = new SandboxIndex();
    const metadata = { job: '42' };
    index.place(placed('a', { metadata }));
    index.place(placed('b', { metadata }));
    index.place(placed('a', { metadata, status: 'Stopping' }));
    expect(index.list({ metadata, phase: 'Stopping' }, 0, 9).ids).to.deep.equal(['a']);
    index.place(placed('a', { metadata, status: 'Completed' }));
    expect(index.list({ metadata }, 0, 9).ids).to.deep.equal(['b']);
    index.remove('a');
    index.remove('b');
    expect(index.list({ metadata }, 0, 9).total).to.equal(0);
  });

  it('finds the same as a full search, whatever moves', () => {
    const pair = fc.record(
      { job: fc.constantFrom('1', '2'), stage: fc.constantFrom('a', 'b') },
      { requiredKeys: [] },
    );
    const step = fc.record({
      id: fc.constantFrom('a', 'b', 'c', 'd'),
      status: fc.constantFrom('Running', 'Stopping', 'Completed', undefined),
      claimedAt: fc.integer({ min: 1, max: 3 }),
      owner: fc.constantFrom(...OWNERS),
      poolName: fc.constantFrom('x', 'y'),
      metadata: fc.option(pair, { nil: undefined }),
    });
    const asked = fc.record(
      {
        namespace: fc.constant('alpha'),
        team: fc.constant('alpha'),
        user: fc.constantFrom('alice', 'bob'),
        poolName: fc.constantFrom('x', 'y'),
        phase: fc.constantFrom('Running', 'Stopping'),
        metadata: pair.filter((pairs) => Object.keys(pairs).length > 0),
      },
      { requiredKeys: ['metadata'] },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), asked, (steps, filter) => {
        const index = new SandboxIndex();
        const all = new Map<string, Placement>();
        for (const { id, status, ...part } of steps) {
          if (status === undefined) {
            index.remove(id);
            all.delete(id);
            continue;
          }
          const placement = placed(id, { ...part, status });
          index.place(placement);
          all.set(id, placement);
        }
        const expected = [...all.values()]
          .filter((one) => one.status !== 'Completed' && matches(one, filter as LiveFilter))
          .sort((a, b) => (b.claimedAt ?? 0) - (a.claimedAt ?? 0) || (a.id < b.id ? 1 : -1))
          .map(({ id }) => id);

        expect(index.list(filter as LiveFilter, 0, 9)).to.deep.equal({
          ids: expected,
          total: expected.length,
        });
      }),
      { numRuns: runs(300) },
    );
  });
});

const matches = (one: Placement, { user, poolName, phase, metadata = {} }: LiveFilter): boolean =>
  (user ?? one.owner.user) === one.owner.user &&
  (poolName ?? one.poolName) === one.poolName &&
  (phase ?? one.status) === one.status &&
  hasPairs(one.metadata, metadata);
