import { Daemon } from '../daemon.ts';
import type { Figure } from '../figure.ts';
import { childrenOf, residentMbOf } from '../process-facts.ts';

const IDLE = 200;

export const memory: Figure = {
  name: 'memory',
  about: 'resident memory of the daemon with 200 idle sandboxes, fresh from its start',
  run: async (bench) => {
    const [fresh, ours, spawners]: [number[], number[], number[]] = [[], [], []];
    for (let round = 0; round < bench.rounds; round += 1) {
      const daemon = await Daemon.start(bench.load);
      try {
        await daemon.calm();
        fresh.push(residentMbOf(daemon.pid));
        await daemon.service.createFullPool('bench', IDLE);
        await daemon.calm();
        ours.push(residentMbOf(daemon.pid));
        const watch = childrenOf(daemon.spawnerPid).filter(
          (pid) => residentMbOf(pid) > 0 && childrenOf(pid).length === 0,
        );
        spawners.push(residentMbOf(daemon.spawnerPid) + Math.max(0, ...watch.map(residentMbOf)));
      } finally {
        await daemon.dispose();
      }
    }
    return [
      {
        name: `daemon memory, ${IDLE} idle sandboxes`,
        unit: 'MB',
        better: 'less',
        reach: 150,
        beyond: 110,
        ours,
      },
      { name: 'the same, without any', unit: 'MB', better: 'less', ours: fresh },
      { name: "the spawner's beside it", unit: 'MB', better: 'less', ours: spawners },
    ];
  },
};
