import { v7 } from 'uuid';
import { silentLog } from '../../src/contracts/log.ts';
import { built } from '../built.ts';
import { fillDatabase, inBatches } from '../filled-database.ts';
import { Daemon } from '../daemon.ts';
import { inPairs, type Figure } from '../figure.ts';
import { expectAll } from '../load.ts';
import { quantile } from '../statistics.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

const FINISHED = 100_000;
/** Over which they were claimed: all are within the window of a list. */
const HOURS = 20;
const OFFSETS = [50_000, 99_980];
const PAGES = 100;

export const list: Figure = {
  name: 'list',
  about: `GET /sandboxes at offsets ${OFFSETS.join(' and ')} of ${FINISHED} finished ones, against offset 0`,
  run: async (bench) => {
    const daemon = await Daemon.start(bench.load, [], { prepare: fillHistory });
    try {
      const { service } = daemon;
      const side = (offset: number) => async (): Promise<number> => {
        const [page] = service.keyed([{ method: 'GET', path: `/sandboxes?offset=${offset}` }]);
        if (!page) throw new Error('there is nothing to ask');
        const result = await bench.load.closed(
          service.port,
          Array.from({ length: PAGES }, () => page),
          1,
        );
        expectAll(result, 200);
        const { items, total } = JSON.parse(result.bodies[0] ?? '') as {
          items: readonly unknown[];
          total: number;
        };
        if (items.length !== 20 || total !== FINISHED)
          throw new Error(`a page had ${items.length} of ${total}`);
        return quantile(result.latencies, 0.5);
      };
      for (const offset of [0, ...OFFSETS, 0, ...OFFSETS]) await side(offset)();
      const measures = [];
      for (const offset of OFFSETS) {
        measures.push({
          name: `list at offset ${offset} / 0, p50`,
          unit: 'ms',
          better: 'less' as const,
          reach: 5,
          beyond: 1.5,
          ...(await inPairs(bench, { ours: side(offset), theirs: side(0) })),
        });
      }
      return measures;
    } finally {
      await daemon.dispose();
    }
  },
};

/** As many finished sandboxes of the tenant that the first start makes a key for. */
const fillHistory = (dataDir: string): Promise<void> =>
  fillDatabase(dataDir, async (database, clock) => {
    const { sqliteHistory } =
      await built<typeof import('../../src/embedded/store/history.ts')>('embedded/store/history');
    const history = sqliteHistory(database, {
      metrics: silentMetrics,
      clock,
      log: silentLog,
      retentionMs: Number.MAX_SAFE_INTEGER,
      bounds: { totalBytes: Number.MAX_SAFE_INTEGER, tenantBytes: Number.MAX_SAFE_INTEGER },
    });
    const from = clock.now() - HOURS * 3_600_000;
    await inBatches(FINISHED, (n) => {
      const claimedAt = from + Math.floor((n * HOURS * 3_600_000) / FINISHED);
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
