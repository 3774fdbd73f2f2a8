import { join } from 'node:path';
import { Child } from '../child.ts';
import { Daemon } from '../daemon.ts';
import { inPairs, type Figure } from '../figure.ts';
import { expectAll } from '../load.ts';
import type { RawAnswer, RawOrder } from '../raw-launcher.ts';
import { quantile } from '../statistics.ts';
import { LAUNCHER, rawTimes } from './fill.ts';

const COMMANDS = 200;
const ARGV = ['/bin/true'];

export const exec: Figure = {
  name: 'exec',
  about: 'a command `true` over REST, against the launcher alone joining the same sandbox',
  run: async (bench) => {
    const raw = new Child<RawOrder, RawAnswer>('raw-launcher');
    const daemon = await Daemon.start(bench.load);
    try {
      const { service } = daemon;
      await service.createFullPool('bench', 1);
      const id = await service.claim('bench');
      const overRest = async (): Promise<readonly number[]> => {
        const result = await bench.load.closed(
          service.port,
          service.commands(id, ARGV, COMMANDS),
          1,
        );
        expectAll(result, 200);
        if (result.bodies.some((body) => !body.includes('"exitCode":0,')))
          throw new Error(`a command failed: ${result.bodies[0] ?? ''}`);
        return result.latencies;
      };
      const alone = (): Promise<readonly number[]> =>
        rawTimes(raw, {
          kind: 'joins',
          launcherPath: LAUNCHER,
          note: join(daemon.dataDir, 'run', id),
          folder: bench.folder,
          argv: ARGV,
          count: COMMANDS,
        });
      await overRest();
      await alone();
      const { ours, theirs } = await inPairs(bench, { ours: overRest, theirs: alone });
      const at = (share: number) => ({
        ours: ours.map((times) => quantile(times, share)),
        theirs: theirs.map((times) => quantile(times, share)),
      });
      return [
        {
          name: 'exec of true, p50',
          unit: 'ms',
          better: 'less',
          reach: 1.3,
          beyond: 1.1,
          ...at(0.5),
        },
        { name: 'exec of true, p99', unit: 'ms', better: 'less', ...at(0.99) },
      ];
    } finally {
      await daemon.dispose();
      await raw.stop();
    }
  },
};
