import { writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { v7 } from 'uuid';
import { lockDataDir } from '../../../src/embedded/store/data-lock.ts';
import { openDatabase } from '../../../src/embedded/store/database.ts';
import { sqliteInstanceRecords } from '../../../src/embedded/store/sqlite-instance-records.ts';
import { systemClock } from '../../../src/embedded/system-clock.ts';
import { aClaim, anOrder } from '../../support/builders/instance-orders.ts';
import { quietLog } from '../../support/fakes/quiet-log.ts';
import { silentMetrics } from '../../../src/contracts/metrics.ts';

/**
 * Takes the folder of the file it is given, asks for approvals, then bears, claims and releases
 * instances until it is killed; says each acknowledgement: id, state.
 */
const say = (line: string): void => {
  for (;;) {
    try {
      writeSync(1, `${line}\n`);
      return;
    } catch (error) {
      // the reader is slower than we are
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error;
    }
  }
};

const path = process.argv[2] ?? '';
lockDataDir(dirname(path));
const database = await openDatabase(path, {
  metrics: silentMetrics,
  log: quietLog,
  clock: systemClock(),
});
const records = sqliteInstanceRecords(database);
say('open');

const live = async (): Promise<void> => {
  for (;;) {
    const { record: launchOrder, definition } = anOrder(undefined, v7());
    const idle = await records.launchOrder(launchOrder, definition);
    say(`${idle.id} idle`);
    await records.claim(idle, aClaim());
    say(`${idle.id} claimed`);
    await records.release(idle.id, { reason: 'deleted', exitCode: null });
    say(`${idle.id} ending`);
  }
};

/** Each by itself: its commit does not wait for the disk. */
const ask = async (): Promise<void> => {
  for (let n = 0; n < ASKED; n += 1) {
    const id = v7();
    await database.run('approvals.create', id, JSON.stringify({ id }));
    say(`${id} asked`);
  }
};
const ASKED = 20;

await ask();
await Promise.all(Array.from({ length: 8 }, live));
