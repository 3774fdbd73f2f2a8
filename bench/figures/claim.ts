import { Bare } from '../bare.ts';
import { claimRound } from '../claim-round.ts';
import { Daemon } from '../daemon.ts';
import { inPairs, type Figure } from '../figure.ts';
import type { Ask } from '../kept-connection.ts';
import { costOf, type Cost } from '../load.ts';
import { rowOf } from '../measure.ts';

const CLAIMS = 200;
const POOL = 'bench';
const WARM_UP = 5;

export const claim: Figure = {
  name: 'claim',
  about: 'claims one at a time, against a bare durable POST',
  run: async (bench) => {
    await using daemon = await Daemon.start(bench.load);
    await using bare = await Bare.start(bench.folder, 'direct');
    await daemon.service.createFullPool(POOL, CLAIMS);
    const run = (port: number, asks: readonly Ask[]) => bench.load.closed(port, asks, 1);
    const pairs = await inPairs<Cost>(
      bench,
      {
        ours: () => claimRound(daemon, { pool: POOL, count: CLAIMS, run }),
        theirs: () => costOf([bare.pid], 201, () => run(bare.port, bare.asks(CLAIMS))),
      },
      WARM_UP,
    );
    return [
      rowOf(
        { name: 'claim p50, one at a time / bare POST', reach: 1.5, beyond: 1.2 },
        pairs,
        ({ p50 }) => p50,
      ),
      rowOf({ name: 'processor time of it / bare POST' }, pairs, ({ cpuMs }) => cpuMs),
    ];
  },
};
