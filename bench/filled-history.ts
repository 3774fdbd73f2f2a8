import { v7 } from 'uuid';
import { silentLog } from '../src/contracts/log.ts';
import { silentMetrics } from '../src/contracts/metrics.ts';
import { built } from './built.ts';
import { fillDatabase, inBatches } from './filled-database.ts';

/** Over which they were claimed: all are within the window of a list. */
const HOURS = 20;

/** Puts so many finished sandboxes, of the tenant that the first start makes a key for. */
export const fillHistory =
  (finished: number) =>
  (dataDir: string): Promise<void> =>
    fillDatabase(dataDir, async (database, clock) => {
      const { sqliteHistory } =
        await built<typeof import('../src/embedded/store/history.ts')>('embedded/store/history');
      const history = sqliteHistory(database, {
        metrics: silentMetrics,
        clock,
        log: silentLog,
        retentionMs: Number.MAX_SAFE_INTEGER,
        bounds: { totalBytes: Number.MAX_SAFE_INTEGER, tenantBytes: Number.MAX_SAFE_INTEGER },
      });
      const from = clock.now() - HOURS * 3_600_000;
      await inBatches(finished, (n) => {
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
      });
    });
