import { join } from 'node:path';
import { silentLog } from '../src/contracts/log.ts';
import { silentMetrics } from '../src/contracts/metrics.ts';
import type { Clock } from '../src/contracts/clock.ts';
import { built } from './built.ts';

type Database = Awaited<
  ReturnType<typeof import('../src/embedded/store/database.ts').openDatabase>
>;

/** Puts something into the database of a folder before a daemon starts on it. */
export const fillDatabase = async (
  dataDir: string,
  fill: (database: Database, clock: Clock) => Promise<void>,
): Promise<void> => {
  const { openDatabase } =
    await built<typeof import('../src/embedded/store/database.ts')>('embedded/store/database');
  const { systemClock } =
    await built<typeof import('../src/embedded/system-clock.ts')>('embedded/system-clock');
  const clock = systemClock();
  const database = await openDatabase(join(dataDir, 'sandpool.db'), {
    metrics: silentMetrics,
    log: silentLog,
    clock,
  });
  await fill(database, clock);
  await database.close();
};

/** Makes so many, some of which share a commit. */
export const inBatches = async (
  count: number,
  make: (n: number) => Promise<unknown>,
): Promise<void> => {
  for (let at = 0; at < count; at += AT_ONCE)
    await Promise.all(
      Array.from({ length: Math.min(AT_ONCE, count - at) }, (_, n) => make(at + n)),
    );
};

const AT_ONCE = 500;
