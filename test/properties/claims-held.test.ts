import { expect } from 'chai';
import * as fc from 'fast-check';
import { alice } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { aClaimWorld, KEYS, type ClaimStep } from './claims-held.ts';
import { checkAsync } from './check.ts';
import { runs } from '../support/harness/runs.ts';

const at = fc.nat(9);
const step: fc.Arbitrary<ClaimStep> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('claim' as const),
      waits: fc.boolean(),
      key: fc.nat(KEYS.length + 2),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom('reservations' as const, 'writes' as const),
      are: fc.constantFrom('slow' as const, 'answered' as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom('reservation' as const, 'write' as const),
      fails: fc.constantFrom('refused' as const, 'unknown' as const, 'conflict' as const),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'unavailable' as const,
        'available' as const,
        'dies' as const,
        'throws' as const,
        'retired' as const,
        'cancel' as const,
      ),
      at,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('time' as const),
      ms: fc.constantFrom(100, 1_000, 6_000),
    }),
  },
);

describe('instances reserved by claims', () => {
  it('are released at every end of a claim, and a key has at most one sandbox', async function () {
    await checkAsync(
      fc.asyncProperty(fc.array(step, { maxLength: 30, size: 'max' }), async (steps) => {
        const world = await aClaimWorld();
        const { supervisor, pool, pools, clock, counts } = world;
        for (const one of steps) await world.take(one);
        await world.calm();

        expect(world.open.size, 'claims that hang').to.equal(0);
        expect(supervisor.index.heldOf(pool.uid)).to.equal(undefined);
        expect(supervisor.index.idleIn(pool.uid)).to.equal(counts()?.idle);
        expect(world.misnamed, 'claims that the entry of their key does not name').to.deep.equal(
          [],
        );
        const marks = supervisor.ids().flatMap((id) => {
          const { state, context } = supervisor.sandbox(id)!; // it is one of those
          return state === 'running' ? [context.record?.claim?.mark?.key] : [];
        });
        for (const key of KEYS) {
          expect(
            marks.filter((mark) => mark === key),
            key,
          ).to.have.length.below(2);
          expect(
            new Set(world.answered.filter((each) => each.key === key).map(({ id }) => id)).size,
            key,
          ).to.be.below(2);
        }
        for (let idle = counts()?.idle ?? 0; idle > 0; idle--)
          await world.claim(alice, { poolName: 'default' });
        await supervisor.pools.change(pool.uid, (record) => ({ ...record, deleting: 'force' }));
        await eventually(() => {
          clock.advance(500);
          return pools.records.size === 0 && supervisor.actors.size === 0;
        }, 'the pool can be deleted');
      }),
      { numRuns: runs(300) },
    );
  });
});
