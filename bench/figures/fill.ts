import { Child } from '../child.ts';
import { Daemon } from '../daemon.ts';
import { inPairs, type Figure } from '../figure.ts';
import { rowOf } from '../measure.ts';
import type { RawOrder } from '../raw-launcher.ts';
import { rawStarts } from '../raw-starts.ts';

const SANDBOXES = 100;
const PARALLEL = 4;
const POOL = 'bench';

export const fill: Figure = {
  name: 'fill',
  about: `a pool of ${SANDBOXES} filled, against as many raw starts of bubblewrap, ${PARALLEL} at a time on both sides`,
  run: async (bench) => {
    await using raw = new Child<RawOrder, readonly number[]>('raw-launcher');
    await using daemon = await Daemon.start(bench.load, ['--parallel-starts', String(PARALLEL)]);
    const ours = async (): Promise<number> => {
      const began = performance.now();
      await daemon.service.createFullPool(POOL, SANDBOXES);
      const tookMs = performance.now() - began;
      await daemon.service.removePool(POOL);
      await daemon.calm();
      return tookMs;
    };
    const theirs = (cgroups: boolean) => (): Promise<number> =>
      rawStarts(raw, { bench, daemon, count: SANDBOXES, parallel: PARALLEL, cgroups });
    await ours();
    const plain = await inPairs(bench, { ours, theirs: theirs(false) });
    const withCgroups = await inPairs(bench, { ours, theirs: theirs(true) });
    return [
      rowOf(
        { name: `pool of ${SANDBOXES} filled / raw starts`, reach: 1.2, beyond: 1.05 },
        plain,
        (ms) => ms,
      ),
      rowOf({ name: 'the same / raw starts with cgroups' }, withCgroups, (ms) => ms),
    ];
  },
};
