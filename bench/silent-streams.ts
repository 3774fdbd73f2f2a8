import type { Socket } from 'node:net';
import { Daemon } from './daemon.ts';
import type { Bench } from './figure.ts';
import type { Measure } from './measure.ts';
import { cpuMsOf, pause, residentMbOf } from './process-facts.ts';

const [SANDBOXES, EACH] = [10, 50];
export const SILENT_STREAMS = SANDBOXES * EACH;
const SILENT_MS = 15_000;

export interface SilentStreams {
  readonly what: string;
  readonly flags?: readonly string[];
  /** Starts a process of the sandbox that prints nothing, and returns its stream once it runs. */
  readonly open: (daemon: Daemon, sandboxId: string) => Promise<Socket>;
}

/** Measures what so many streams that say nothing cost daemon and spawner. */
export const silentStreams = async (
  bench: Bench,
  { what, flags, open }: SilentStreams,
): Promise<readonly Measure[]> => {
  const [cores, memory]: [number[], number[]] = [[], []];
  for (let round = 0; round < bench.rounds; round += 1) {
    const daemon = await Daemon.start(bench.load, flags);
    const sockets: Socket[] = [];
    try {
      await daemon.service.createFullPool('bench', SANDBOXES);
      const ids: string[] = [];
      for (let at = 0; at < SANDBOXES; at += 1) ids.push(await daemon.service.claim('bench'));
      // Until the code is compiled.
      for (const id of ids) (await open(daemon, id)).destroy();
      await daemon.calm();
      const before = memoryOf(daemon);
      for (let at = 0; at < EACH; at += 1)
        sockets.push(...(await Promise.all(ids.map((id) => open(daemon, id)))));
      await daemon.calm();
      memory.push(((memoryOf(daemon) - before) * 1_024) / sockets.length);
      const used = cpuMsOf(daemon.pid) + cpuMsOf(daemon.spawnerPid);
      await pause(SILENT_MS);
      const now = cpuMsOf(daemon.pid) + cpuMsOf(daemon.spawnerPid);
      cores.push(((now - used) / SILENT_MS) * 100);
    } finally {
      for (const socket of sockets) socket.destroy();
      await daemon.dispose();
    }
  }
  const of = `${SILENT_STREAMS} ${what}`;
  const less = { better: 'less' } as const;
  return [
    { name: `${of}: part of a core`, unit: '%', ...less, reach: 3, beyond: 1, ours: cores },
    {
      name: `${of}: memory of daemon and spawner, each`,
      unit: 'KiB',
      ...less,
      reach: 64,
      beyond: 32,
      ours: memory,
    },
  ];
};

/** Resident memory of daemon and spawner in MiB. */
export const memoryOf = (daemon: Daemon): number =>
  residentMbOf(daemon.pid) + residentMbOf(daemon.spawnerPid);
