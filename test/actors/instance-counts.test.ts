import { expect } from 'chai';
import fc from 'fast-check';
import { InstanceCounts } from '../../src/actors/pool/pool-snapshot.ts';
import { NO_INSTANCES, type PoolCounts } from '../../src/model/pools/pool.ts';

const place = fc.option(
  fc.constantFrom<keyof PoolCounts>(
    'starting',
    'idle',
    'unavailable',
    'running',
    'stopping',
    'failed',
  ),
  { nil: undefined },
);
const step = fc.record({ id: fc.nat({ max: 7 }), to: place });
const poolOf = (id: number): string => (id % 2 === 0 ? 'p' : 'q');
const revisionOf = (id: number): string => `r${id % 3}`;

const recount = (
  places: readonly (readonly [number, keyof PoolCounts | undefined])[],
): PoolCounts => {
  const counts = { ...NO_INSTANCES } as { -readonly [at in keyof PoolCounts]: number };
  for (const [, at] of places) if (at) counts[at] += 1;
  return counts;
};

describe('the instance counts of pools', () => {
  it('equal those of a full search, by pool and revision, whatever moves where', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const instances = new InstanceCounts();
        const places = new Map<number, keyof PoolCounts | undefined>();
        for (const { id, to } of steps) {
          const from = places.get(id);
          if (from === to) continue;
          instances.move({ poolUid: poolOf(id), revision: revisionOf(id), from, to });
          places.set(id, to);
        }
        for (const poolUid of ['p', 'q']) {
          for (const revision of ['r0', 'r1', 'r2']) {
            const own = [...places].filter(([id]) => poolOf(id) === poolUid);
            expect(instances.counted(poolUid, revision)).to.deep.equal({
              counts: recount(own),
              updated: recount(own.filter(([id]) => revisionOf(id) === revision)),
            });
          }
        }
      }),
    );
  });

  it('keep nothing of a pool without instances', () => {
    const instances = new InstanceCounts();
    instances.move({ poolUid: 'p', revision: 'r', from: undefined, to: 'idle' });
    instances.move({ poolUid: 'p', revision: 'r', from: 'idle', to: undefined });
    expect(instances.counted('p', 'r')).to.deep.equal({
      counts: NO_INSTANCES,
      updated: NO_INSTANCES,
    });
  });
});
