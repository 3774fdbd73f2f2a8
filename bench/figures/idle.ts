import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Daemon } from '../daemon.ts';
import type { Figure } from '../figure.ts';
import { HEAP_FILE, scriptedAssembly } from '../lean-assembly.ts';
import { cpuMsOf, pause } from '../process-facts.ts';
import { SCRIPTED_FLAGS } from './inside.ts';

const [POOLS, SIZE] = [200, 50];
const CALM_MS = 15_000;
const IDLE_MS = 30_000;
const MOST_ROUNDS = 3;
const MORE = 10_000;
const HEAP_WITHIN_MS = 30_000;

export const idle: Figure = {
  name: 'idle',
  about: `processor time of a daemon with ${POOLS} pools of ${SIZE} idle instances, which are scripted; memory of an instance`,
  run: async (bench) => {
    const daemon = await Daemon.start(bench.load, SCRIPTED_FLAGS, { command: scriptedAssembly() });
    try {
      for (let pool = 0; pool < POOLS; pool += 1)
        await daemon.service.createPool(`idle-${pool}`, SIZE);
      for (let pool = 0; pool < POOLS; pool += 1)
        await daemon.service.untilIdle(`idle-${pool}`, SIZE);
      await pause(CALM_MS); // what was made has settled
      const shares: number[] = [];
      for (let round = 0; round < Math.min(bench.rounds, MOST_ROUNDS); round += 1) {
        const before = cpuMsOf(daemon.pid);
        await pause(IDLE_MS);
        shares.push(((cpuMsOf(daemon.pid) - before) / IDLE_MS) * 100);
      }
      const before = await heapOf(daemon);
      await daemon.service.createFullPool('more', MORE);
      await pause(CALM_MS);
      return [
        {
          name: `${POOLS} pools of ${SIZE} instances, idle: share of a processor`,
          unit: '%',
          better: 'less',
          reach: 2,
          beyond: 1,
          ours: shares,
        },
        {
          name: 'heap of the daemon for each idle instance',
          unit: 'KB',
          better: 'less',
          ours: [((await heapOf(daemon)) - before) / MORE / 1_024],
        },
      ];
    } finally {
      await daemon.dispose();
    }
  },
};

/** In bytes, after a collection. */
export const heapOf = async ({ pid, dataDir }: Daemon): Promise<number> => {
  const file = join(dataDir, HEAP_FILE);
  process.kill(pid, 'SIGUSR2');
  for (const deadline = performance.now() + HEAP_WITHIN_MS; !existsSync(file);) {
    if (performance.now() > deadline) throw new Error('the daemon does not tell its heap');
    await pause(10);
  }
  const bytes = Number(readFileSync(file, 'utf8'));
  rmSync(file);
  return bytes;
};
