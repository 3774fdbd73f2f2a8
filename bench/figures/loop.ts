import { Child } from '../child.ts';
import { BENCH_FLAGS, endAll, newDataDir, serviceOf } from '../daemon.ts';
import type { ProbeAnswer, ProbeOrder } from '../daemon-with-probe.ts';
import type { Figure } from '../figure.ts';
import { expectAll } from '../load.ts';
import { untilCalm } from '../process-facts.ts';

const PER_SECOND = 200;
const CLAIMS = 500;
const FILLED = 100;

export const loop: Figure = {
  name: 'loop',
  about: "the daemon's event-loop delay while a pool of 100 fills and 200 claims/s run",
  run: async (bench) => {
    const dataDir = newDataDir();
    const options = { ...optionsOf(BENCH_FLAGS), dataDir, listen: '127.0.0.1:0' };
    const probed = new Child<ProbeOrder, ProbeAnswer>('daemon-with-probe', {
      args: [JSON.stringify(options)],
    });
    try {
      if ((await probed.hear()) !== 'ready') throw new Error('the daemon did not start');
      const service = serviceOf(dataDir, bench.load);
      await service.createFullPool('claimed', CLAIMS);
      const delays: { p99: number; max: number }[] = [];
      for (let round = 0; round < bench.rounds; round += 1) {
        await untilCalm([probed.pid]);
        await probed.ask('reset');
        const claims = bench.load.open(service.port, service.claims('claimed', CLAIMS), PER_SECOND);
        await service.createFullPool('filled', FILLED);
        const claimed = await claims;
        const delay = await probed.ask('read');
        if (typeof delay === 'string') throw new Error('the daemon did not tell its delay');
        delays.push(delay);
        expectAll(claimed, 201);
        await service.removePool('filled');
        await service.giveBack(claimed);
        await service.untilIdle('claimed', CLAIMS);
      }
      await service.close();
      return [
        {
          name: `event-loop delay p99, ${PER_SECOND} claims/s and a fill`,
          unit: 'ms',
          better: 'less',
          reach: 20,
          beyond: 10,
          ours: delays.map(({ p99 }) => p99),
        },
        {
          name: 'the same, longest',
          unit: 'ms',
          better: 'less',
          ours: delays.map(({ max }) => max),
        },
      ];
    } finally {
      await probed.stop();
      await endAll(dataDir);
    }
  },
};

/** `['--quotas-pools', '5']` as the configuration takes it from a command line. */
const optionsOf = (flags: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(
    flags.flatMap((flag, at) =>
      at % 2 === 0
        ? [
            [
              flag.slice(2).replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase()),
              flags[at + 1] ?? '',
            ],
          ]
        : [],
    ),
  );
