import { Daemon } from '../daemon.ts';
import { inPairs, type Bench, type Figure } from '../figure.ts';
import type { Ask } from '../kept-connection.ts';
import { expectAll } from '../load.ts';
import type { Measure } from '../measure.ts';
import { quantile } from '../statistics.ts';

const CLAIMS = 60;
const PER_SECOND = 20;
const POOL = 'bench';
const WARM_UP = 2;
const WITH_ENV = {
  env: { API_URL: 'http://127.0.0.1:8000', TOKEN: 'a-secret-of-forty-characters-or-some-more' },
  metadata: { job: '42', owner: 'somebody' },
};
const WITH_FILES = {
  files: ['main.py', 'data/input.json', 'notes.txt'].map((name) => ({
    path: `/tmp/${name}`,
    content: 'a line of a small file\n'.repeat(20),
  })),
};

export const furnished: Figure = {
  name: 'furnished',
  about: 'a claim with variables and metadata, and one with three small files, against without',
  run: async (bench) => {
    const daemon = await Daemon.start(bench.load);
    try {
      await daemon.service.createFullPool(POOL, CLAIMS);
      const plain = round(bench, daemon, {});
      const withEnv = round(bench, daemon, WITH_ENV);
      const withFiles = round(bench, daemon, WITH_FILES);
      for (let turn = 0; turn < WARM_UP; turn += 1)
        for (const each of [plain, withEnv, withFiles]) await each();
      const row = async (
        name: string,
        ours: () => Promise<number>,
        marks: Pick<Measure, 'reach' | 'beyond'>,
      ): Promise<Measure> => ({
        name,
        unit: 'ms',
        better: 'less',
        ...marks,
        ...(await inPairs(bench, { ours, theirs: plain })),
      });
      return [
        await row(`claim p50 at ${PER_SECOND}/s, with env and metadata / without`, withEnv, {
          reach: 1.1,
          beyond: 1.02,
        }),
        await row(`claim p50 at ${PER_SECOND}/s, with three small files / without`, withFiles, {
          reach: 2,
          beyond: 1.5,
        }),
      ];
    } finally {
      await daemon.dispose();
    }
  },
};

const round = (bench: Bench, daemon: Daemon, terms: object) => async (): Promise<number> => {
  const { service } = daemon;
  const ask: Ask = {
    method: 'POST',
    path: '/sandboxes',
    body: JSON.stringify({ poolName: POOL, ...terms }),
  };
  const asks = service.keyed(Array.from({ length: CLAIMS }, () => ask));
  const result = await bench.load.open(service.port, asks, PER_SECOND);
  expectAll(result, 201);
  await service.giveBack(result);
  await service.untilIdle(POOL, CLAIMS);
  await daemon.calm();
  return quantile(result.latencies, 0.5);
};
