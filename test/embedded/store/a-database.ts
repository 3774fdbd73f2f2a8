import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type Database,
  type DatabaseOptions,
  openDatabase,
} from '../../../src/embedded/store/database.ts';
import { quietLog } from '../../support/fakes/quiet-log.ts';
import { TestClock } from '../../support/fakes/test-clock.ts';
import { silentMetrics } from '../../../src/contracts/metrics.ts';

export const aFolder = (): string => mkdtempSync(join(tmpdir(), 'sandpool-store-'));

export interface OpenFile {
  readonly database: Database;
  readonly path: string;
  readonly clock: TestClock;
  /** Also removes the file. */
  close(): Promise<void>;
}

/** A database of its own in a folder of its own. */
export const aDatabase = async (
  options: Partial<DatabaseOptions> = {},
  folder = aFolder(),
): Promise<OpenFile> => {
  const path = join(folder, 'sandpool.db');
  const clock = new TestClock();
  const database = await openDatabase(path, {
    metrics: silentMetrics,
    log: quietLog,
    clock,
    // Commits stay in the tests' own thread, however slow the machine's disk is today.
    slowCommitMs: () => Number.POSITIVE_INFINITY,
    ...options,
  });
  return {
    database,
    path,
    clock,
    close: async () => {
      await database.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
