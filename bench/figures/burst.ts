import { Child } from '../child.ts';
import { Daemon } from '../daemon.ts';
import { inPairs, type Bench, type Figure } from '../figure.ts';
import { expectAll } from '../load.ts';
import { rowOf } from '../measure.ts';
import type { RawOrder } from '../raw-launcher.ts';
import { rawStarts } from '../raw-starts.ts';

/** A class or a CI matrix asks for as many at once. */
const CLAIMS = 30;
/** The defaults of the first env. */
const [IDLE, PARALLEL] = [4, 4];

export const burst: Figure = {
  name: 'burst',
  about: `${CLAIMS} waiting claims at once on the env of the first start, against as many raw starts`,
  run: async (bench) => {
    await using raw = new Child<RawOrder, readonly number[]>('raw-launcher');
    await using daemon = await Daemon.start(bench.load);
    const pairs = await inPairs(bench, {
      ours: () => lastServed(bench),
      theirs: () =>
        rawStarts(raw, { bench, daemon, count: CLAIMS, parallel: PARALLEL, cgroups: true }),
    });
    const name = `${CLAIMS} waiting claims at once, last served / raw starts`;
    return [rowOf({ name, reach: 2, beyond: 1.3 }, pairs, (ms) => ms)];
  },
};

/** On its own daemon: an env grows for the first time only once. */
const lastServed = async (bench: Bench): Promise<number> => {
  await using daemon = await Daemon.start(bench.load, ['--default-pool-replicas', String(IDLE)]);
  await daemon.service.untilIdle('default', IDLE);
  await daemon.calm();
  const body = JSON.stringify({ poolName: 'default', waitTimeoutSeconds: 60 });
  const asks = Array.from({ length: CLAIMS }, () => ({ method: 'POST', path: '/sandboxes', body }));
  const result = await bench.load.closed(daemon.service.port, daemon.service.keyed(asks), CLAIMS);
  expectAll(result, 201);
  return result.tookMs;
};
