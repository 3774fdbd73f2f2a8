import type { Socket } from 'node:net';
import { Daemon } from './daemon.ts';
import { inPairs, type Bench } from './figure.ts';
import { expectAll } from './load.ts';
import type { Measure } from './measure.ts';
import { pause } from './process-facts.ts';
import { memoryOf } from './silent-streams.ts';
import { quantile } from './statistics.ts';

export const STALLED_READERS = 64;
const CLAIMS = 150;
const PER_SECOND = 50;
const ONSET_MS = 1_000;

export interface StalledReaders {
  readonly what: string;
  readonly flags?: readonly string[];
  /** Opens all of them on one `yes` of the sandbox; they take the start of it and no more. */
  readonly open: (daemon: Daemon, sandboxId: string) => Promise<readonly Socket[]>;
  /** Ends the `yes`. */
  readonly end: (daemon: Daemon, sandboxId: string) => Promise<void>;
}

/** Measures what readers that take nothing cost daemon and spawner, and others that claim. */
export const stalledReaders = async (
  bench: Bench,
  { what, flags, open, end }: StalledReaders,
): Promise<readonly Measure[]> => {
  const daemon = await Daemon.start(bench.load, flags);
  try {
    const { service } = daemon;
    await service.createFullPool('bench', CLAIMS);
    await service.createFullPool('printing', 1);
    const id = await service.claim('printing');
    const claims = async (): Promise<number> => {
      const asks = service.claims('bench', CLAIMS);
      const result = await bench.load.open(service.port, asks, PER_SECOND);
      expectAll(result, 201);
      const p99 = quantile(result.latencies, 0.99);
      await service.giveBack(result);
      await service.untilIdle('bench', CLAIMS);
      return p99;
    };
    const memory: number[] = [];
    const beside = async (): Promise<number> => {
      const before = memoryOf(daemon);
      const sockets = await open(daemon, id);
      try {
        await pause(ONSET_MS);
        const p99 = await claims();
        memory.push(memoryOf(daemon) - before);
        return p99;
      } finally {
        for (const socket of sockets) socket.destroy();
        await end(daemon, id);
        await daemon.calm();
      }
    };
    await claims();
    await beside();
    memory.length = 0;
    const found = await inPairs(bench, { ours: beside, theirs: claims });
    return [
      {
        name: `${STALLED_READERS} ${what} under yes: memory of daemon and spawner`,
        unit: 'MiB',
        better: 'less',
        reach: 64,
        beyond: 16,
        ours: memory,
      },
      {
        name: `others' claim p99 beside ${STALLED_READERS} ${what} / without`,
        unit: 'ms',
        better: 'less',
        reach: 2,
        beyond: 1.2,
        ...found,
      },
    ];
  } finally {
    await daemon.dispose();
  }
};
