import { Daemon } from '../daemon.ts';
import type { Figure } from '../figure.ts';
import { scriptedAssembly } from '../lean-assembly.ts';
import { cpuMsOf, pause } from '../process-facts.ts';
import { SCRIPTED_FLAGS } from './inside.ts';

const [POOLS, SIZE] = [200, 50];
const CALM_MS = 15_000;
const IDLE_MS = 30_000;
const MOST_ROUNDS = 3;

export const idle: Figure = {
  name: 'idle',
  about: `processor time of a daemon with ${POOLS} pools of ${SIZE} idle instances, which are scripted`,
  run: async (bench) => {
    const daemon = await Daemon.start(bench.load, SCRIPTED_FLAGS, { command: scriptedAssembly() });
    try {
      for (let pool = 0; pool < POOLS; pool += 1) await daemon.service.createPool(`idle-${pool}`, SIZE);
      for (let pool = 0; pool < POOLS; pool += 1) await daemon.service.untilIdle(`idle-${pool}`, SIZE);
      await pause(CALM_MS); // what was made has settled
      const shares: number[] = [];
      for (let round = 0; round < Math.min(bench.rounds, MOST_ROUNDS); round += 1) {
        const before = cpuMsOf(daemon.pid);
        await pause(IDLE_MS);
        shares.push(((cpuMsOf(daemon.pid) - before) / IDLE_MS) * 100);
      }
      return [{ name: `${POOLS} pools of ${SIZE} instances, idle: share of a processor`, unit: '%', better: 'less', reach: 2, beyond: 1, ours: shares }];
    } finally {
      await daemon.dispose();
    }
  },
};
