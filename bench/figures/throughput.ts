import { strongestBare } from '../bare.ts';
import { Daemon } from '../daemon.ts';
import { inPairs, type Figure } from '../figure.ts';
import { expectAll } from '../load.ts';
import type { LoadResult } from '../load-protocol.ts';
import { cpuMsOf } from '../process-facts.ts';

const CLAIMS = 1_000;
const IN_FLIGHT = 32;
const POOL = 'bench';

export const throughput: Figure = {
  name: 'throughput',
  about: 'claims a second with 32 in flight until a pool of 1,000 is empty, against the bare server',
  run: async (bench) => {
    const daemon = await Daemon.start(bench.load);
    try {
      const { service } = daemon;
      await service.createFullPool(POOL, CLAIMS);
      await daemon.calm();
      const rate = ({ tookMs }: LoadResult): number => (CLAIMS * 1_000) / tookMs;
      const bare = await strongestBare(bench.folder, bench.load, ({ port, asks }) => bench.load.closed(port, asks(CLAIMS), IN_FLIGHT), (result) => -rate(result));
      bench.say(`${IN_FLIGHT} in flight: the strongest bare server commits ${bare.mode}`);
      const side = async (pid: number, run: () => Promise<LoadResult>) => {
        const before = cpuMsOf(pid);
        const result = await run();
        const cpuMs = (cpuMsOf(pid) - before) / CLAIMS;
        expectAll(result, 201);
        return { result, rate: rate(result), cpuMs };
      };
      const { ours, theirs } = await inPairs(bench, {
        ours: async () => {
          const sample = await side(daemon.pid, () => bench.load.closed(service.port, service.claims(POOL, CLAIMS), IN_FLIGHT));
          await service.giveBack(sample.result);
          await service.untilIdle(POOL, CLAIMS);
          await daemon.calm();
          return sample;
        },
        theirs: () => side(bare.pid, () => bench.load.closed(bare.port, bare.asks(CLAIMS), IN_FLIGHT)),
      });
      await bare.stop();
      return [
        {
          name: `claims/s, ${IN_FLIGHT} in flight, pool of ${CLAIMS}`, unit: '/s', better: 'more', reach: 0.6, beyond: 0.8,
          ours: ours.map((sample) => sample.rate), theirs: theirs.map((sample) => sample.rate),
        },
        {
          name: `claim processor time, ${IN_FLIGHT} in flight`, unit: 'ms', better: 'less',
          ours: ours.map(({ cpuMs }) => cpuMs), theirs: theirs.map(({ cpuMs }) => cpuMs),
        },
      ];
    } finally {
      await daemon.dispose();
    }
  },
};
