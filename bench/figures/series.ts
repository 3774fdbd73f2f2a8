import { readPidFile } from '../../src/process/pid-file.ts';
import { Daemon } from '../daemon.ts';
import type { Figure } from '../figure.ts';
import { expectAll } from '../load.ts';

const POOLS = 1_000;
/** Of them have an instance. */
const FILLED = 60;

export const series: Figure = {
  name: 'series',
  about:
    'series of metrics with 1,000 pools, after requests of many kinds; and the time to write them out',
  run: async (bench) => {
    const daemon = await Daemon.start(bench.load, ['--quotas-pools', String(2 * POOLS)]);
    try {
      const { service } = daemon;
      for (let pool = 0; pool < POOLS; pool += 1)
        await service.createPool(`p${pool}`, pool < FILLED ? 1 : 0);
      for (let pool = 0; pool < FILLED; pool += 1) await service.untilIdle(`p${pool}`, 1);
      const claimed = await bench.load.closed(
        service.port,
        Array.from({ length: FILLED }, (_, pool) => service.claims(`p${pool}`, 1)).flat(),
        4,
      );
      expectAll(claimed, 201);
      for (const path of PATHS) await service.answerTo({ method: 'GET', path });
      await service.giveBack(claimed);
      await daemon.calm();
      const address = readPidFile(daemon.dataDir)?.metricsAddress;
      if (address === undefined) throw new Error('the daemon serves no metrics');
      const [counts, times]: [number[], number[]] = [[], []];
      for (let round = 0; round < bench.rounds; round += 1) {
        const began = performance.now();
        const text = await (await fetch(address)).text();
        times.push(performance.now() - began);
        counts.push(text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length);
      }
      return [
        {
          name: `series of metrics, ${POOLS} pools`,
          unit: '',
          better: 'less',
          reach: 3_000,
          beyond: 1_500,
          ours: counts,
        },
        { name: 'GET /metrics there', unit: 'ms', better: 'less', ours: times },
      ];
    } finally {
      await daemon.dispose();
    }
  },
};

/** What else clients ask for, some of it in vain. */
const PATHS = [
  '/sandboxes',
  '/sandboxes/none',
  '/sandboxpools',
  '/sandboxpools/none',
  '/sandboxenvs',
  '/sandboxenvs/none',
  '/sandboxtemplates',
  '/sandboxtemplates/default',
  '/instancetypes',
  '/volumes',
  '/clusters',
  '/feature-gates',
  '/quotas',
  '/api-keys',
  '/admin/api-keys',
  '/admin/statistics/sandboxes',
  '/debug/shards',
  '/healthz',
  '/readyz',
  '/openapi.json',
  '/docs',
  '/made-up',
];
