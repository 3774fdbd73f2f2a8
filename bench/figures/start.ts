import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { Daemon } from '../daemon.ts';
import { inPairs, type Figure } from '../figure.ts';
import { fillHistory } from '../filled-history.ts';
import { rowOf } from '../measure.ts';

const FINISHED = 100_000;

export const start: Figure = {
  name: 'start',
  about: `a daemon from its start until it is ready, with ${FINISHED} finished sandboxes, against a new one`,
  run: async (bench) => {
    const filled = join(bench.folder, 'filled.db');
    await fillHistory(filled, FINISHED);
    const startMs = async (prepare: (dataDir: string) => void): Promise<number> => {
      await using daemon = await Daemon.start(bench.load, [], { prepare });
      return daemon.startMs;
    };
    const pairs = await inPairs(
      bench,
      {
        ours: () => startMs((dataDir) => cpSync(filled, join(dataDir, 'sandpool.db'))),
        theirs: () => startMs(() => undefined),
      },
      1,
    );
    const name = `start with ${FINISHED} finished sandboxes / with none`;
    return [rowOf({ name }, pairs, (ms) => ms)];
  },
};
