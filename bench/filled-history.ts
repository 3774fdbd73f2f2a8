import { v7 } from 'uuid';
import { silentLog } from '../src/contracts/log.ts';
import { silentMetrics } from '../src/contracts/metrics.ts';
import { built } from './built.ts';

/** Within the window of a list. */
const HOURS = 20;
/** Some share a commit. */
const AT_ONCE = 500;

export const fillHistory = async (path: string, finished: number): Promise<void> => {
  const { openDatabase } =
    await built<typeof import('../src/embedded/store/database.ts')>('embedded/store/database');
  const { systemClock } =
    await built<typeof import('../src/embedded/system-clock.ts')>('embedded/system-clock');
  const { sqliteHistory } =
    await built<typeof import('../src/embedded/store/history.ts')>('embedded/store/history');
  const parts = { metrics: silentMetrics, log: silentLog, clock: systemClock() };
  const database = await openDatabase(path, parts);
  const history = sqliteHistory(database, {
    ...parts,
    retentionMs: Number.MAX_SAFE_INTEGER,
    bounds: { totalBytes: Number.MAX_SAFE_INTEGER, tenantBytes: Number.MAX_SAFE_INTEGER },
  });
  const from = parts.clock.now() - HOURS * 3_600_000;
  const record = (n: number): Promise<void> => {
    const claimedAt = from + Math.floor((n * HOURS * 3_600_000) / finished);
    return history.record({
      id: v7(),
      poolUid: 'bench',
      poolName: 'bench',
      owner: { namespace: 'default', team: 'default', user: 'default' },
      claimedAt,
      startedAt: claimedAt - 1_000,
      terminatedAt: claimedAt + 60_000,
      recycledAt: claimedAt + 60_000,
      cpu: '1',
      memory: '256Mi',
      containerImages: { main: 'host' },
      endReason: 'deleted',
      exitCode: null,
    });
  };
  for (let at = 0; at < finished; at += AT_ONCE)
    await Promise.all(Array.from({ length: AT_ONCE }, (_, n) => record(at + n)));
  await database.close();
};
