import * as fc from 'fast-check';
import { expect } from 'chai';
import { runs } from '../support/harness/runs.ts';
import { checkAsync } from './check.ts';
import { faults, LINKED_WITHIN_MS, StartsWorld } from './linked-starts.ts';

describe('starts of a cluster whose data folder was copied', () => {
  it('are linked one at a time, and one is linked after the last fault', async function () {
    await checkAsync(
      fc.asyncProperty(faults, async (all) => {
        const world = new StartsWorld();
        for (const { afterMs, fault } of all) {
          await world.run(afterMs);
          world.carryOut(fault);
        }
        await world.run(6_000); // until what was cut off for a time is back
        await world.run(2 * LINKED_WITHIN_MS);
        const [first, ...others] = world.linked;
        if (world.up === 0) return;
        expect(first).to.not.equal(undefined);
        expect(others).to.deep.equal([first, first]);
      }),
      { numRuns: runs(100) },
    );
  });

  for (const how of ['kill', 'power off'] as const)
    it(`yield within 5 s to a waiting start after a ${how}, and not before`, async () => {
      const world = new StartsWorld(2);
      await world.run(30_000);
      const [first] = world.linked;
      expect(world.linked).to.deep.equal([first, first, first]);
      expect(world.isToldOf).to.equal(true);
      const second = world.worker(world.worker(0).start === first ? 1 : 0).start;
      world.end(world.worker(0).start === first ? 0 : 1, how);
      await world.run(LINKED_WITHIN_MS);
      expect(world.linked).to.deep.equal([second, second, second]);
      await world.run(30_000);
      expect(world.isToldOf).to.equal(false);
    });

  it('report no conflict when a single daemon restarts', async () => {
    const world = new StartsWorld(1);
    for (const how of ['kill', 'power off'] as const) {
      await world.run(10_000);
      world.end(0, how);
      world.carryOut({ kind: 'start anew', who: 0 });
      await world.run(LINKED_WITHIN_MS);
      const { start } = world.worker(0);
      expect(world.linked).to.deep.equal([start, start, start]);
      expect(world.isToldOf).to.equal(false);
    }
  });
});
