import { Bare } from '../bare.ts';
import { claimRound } from '../claim-round.ts';
import { Daemon } from '../daemon.ts';
import { inPairs, type Figure } from '../figure.ts';
import type { Ask } from '../kept-connection.ts';
import { costOf, type Cost } from '../load.ts';
import { rowOf } from '../measure.ts';

const CLAIMS = 1_000;
const IN_FLIGHT = 32;
const POOL = 'bench';
const WARM_UP = 2;

export const throughput: Figure = {
  name: 'throughput',
  about: `claims a second with ${IN_FLIGHT} in flight, against a bare server that shares commits`,
  run: async (bench) => {
    await using daemon = await Daemon.start(bench.load);
    await using gathered = await Bare.start(bench.folder, 'gathered');
    await using worker = await Bare.start(bench.folder, 'worker');
    await daemon.service.createFullPool(POOL, CLAIMS);
    const run = (port: number, asks: readonly Ask[]) => bench.load.closed(port, asks, IN_FLIGHT);
    const bareCost = (bare: Bare): Promise<Cost> =>
      costOf([bare.pid], 201, () => run(bare.port, bare.asks(CLAIMS)));
    const pairs = await inPairs<Cost>(
      bench,
      {
        ours: () => claimRound(daemon, { pool: POOL, count: CLAIMS, run }),
        theirs: async () => fasterOf(await bareCost(gathered), await bareCost(worker)),
      },
      WARM_UP,
    );
    return [
      rowOf(
        {
          name: `claims/s, ${IN_FLIGHT} in flight / bare POSTs that share commits`,
          unit: '/s',
          better: 'more',
        },
        pairs,
        ({ perSecond }) => perSecond,
      ),
      rowOf({ name: 'processor time of one / bare POST' }, pairs, ({ cpuMs }) => cpuMs),
    ];
  },
};

const fasterOf = (a: Cost, b: Cost): Cost => (a.perSecond > b.perSecond ? a : b);
