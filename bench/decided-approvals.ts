import { v7 } from 'uuid';
import { silentLog } from '../src/contracts/log.ts';
import type { ApprovalRecord } from '../src/model/approvals/approval.ts';
import { built } from './built.ts';
import { Daemon } from './daemon.ts';
import { inPairs, type Bench } from './figure.ts';
import { fillDatabase, inBatches } from './filled-database.ts';
import { expectAll } from './load.ts';
import type { Measure } from './measure.ts';
import { quantile } from './statistics.ts';

const MANY = 100_000;
const FEW = 100;
const PAGES = 100;
const PAGE = 20;
const WARM_UP = 3;
const EVERY_MS = 500;

/** The first page of approvals, where so many were decided and where few were. */
export const approvalLists = async (bench: Bench): Promise<Measure> => {
  const many = await withDecided(bench, MANY);
  try {
    const few = await withDecided(bench, FEW);
    try {
      const sides = { ours: pagesOf(bench, many, MANY), theirs: pagesOf(bench, few, FEW) };
      for (let n = 0; n < WARM_UP; n += 1) {
        await sides.ours();
        await sides.theirs();
      }
      return {
        name: `list page of approvals, ${MANY} decided / ${FEW}, p50`,
        unit: 'ms',
        better: 'less',
        reach: 1.5,
        beyond: 1.1,
        ...(await inPairs(bench, sides)),
      };
    } finally {
      await few.dispose();
    }
  } finally {
    await many.dispose();
  }
};

const withDecided = (bench: Bench, count: number): Promise<Daemon> =>
  Daemon.start(bench.load, ['--approvals-kept', String(2 * MANY)], {
    prepare: (dataDir) => fillDecided(dataDir, count),
  });

const pagesOf =
  (bench: Bench, { service }: Daemon, count: number) =>
  async (): Promise<number> => {
    const asks = Array.from({ length: PAGES }, () => ({ method: 'GET', path: '/approvals' }));
    const result = await bench.load.closed(service.port, service.keyed(asks), 1);
    expectAll(result, 200);
    const { items, total } = JSON.parse(result.bodies[0] ?? '') as {
      readonly items: readonly unknown[];
      readonly total: number;
    };
    if (items.length !== PAGE || total !== count)
      throw new Error(`a page had ${items.length} of ${total}`);
    return quantile(result.latencies, 0.5);
  };

/** Denied ones of the user that the first start makes a key for. */
const fillDecided = (dataDir: string, count: number): Promise<void> =>
  fillDatabase(dataDir, async (database, clock) => {
    const { sqliteRecordStore } = await built<
      typeof import('../src/embedded/store/record-store.ts')
    >('embedded/store/record-store');
    const { approvals } = sqliteRecordStore(database, silentLog);
    const from = clock.now() - count * EVERY_MS;
    await inBatches(count, (n) => approvals.create(denied(from + n * EVERY_MS)));
  });

const denied = (createdAt: number): Omit<ApprovalRecord, 'revision'> => {
  const id = v7({ msecs: createdAt });
  return {
    id,
    principal: {
      namespace: 'default',
      team: 'default',
      user: 'default',
      keyId: 'bench',
      role: 'user',
      persons: ['default'],
    },
    operation: 'deletePool',
    onceOnly: false,
    method: 'DELETE',
    path: `/sandboxpools/${id}`,
    namespace: 'default',
    query: '',
    headers: { accept: '*/*' },
    summary: `Delete a pool: DELETE /sandboxpools/${id}`,
    binding: id,
    createdAt,
    expiresAt: createdAt + 900_000,
    status: 'denied',
    decidedBy: 'bench',
    decidedAt: createdAt + 1_000,
    reason: 'not now',
  };
};
