import * as fc from 'fast-check';
import { checkAsync } from './check.ts';
import { faults, LED_WITHIN_MS, LeaseWorld } from './leases.ts';
import { runs } from '../support/harness/runs.ts';

describe('leases of shards through any fault', function () {
  it(`have at most one holder, and each shard is led within ${LED_WITHIN_MS / 1_000} s of calm`, async () => {
    await checkAsync(
      fc.asyncProperty(faults, fc.integer(), async (faultsToCome, seed) => {
        const world = new LeaseWorld(seed);
        await world.suffer(faultsToCome);
        await world.isLedAfterwards();
      }),
      { numRuns: runs(200) },
    );
  });
});
