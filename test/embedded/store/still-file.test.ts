import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '../../../src/embedded/store/database-library.ts';
import { openDatabase, type Database } from '../../../src/embedded/store/database.ts';
import { systemClock } from '../../../src/embedded/system-clock.ts';
import { quietLog } from '../../support/fakes/quiet-log.ts';
import { rejection } from '../../support/harness/rejection.ts';
import { silentMetrics } from '../../../src/contracts/metrics.ts';

/** Commits on the daemon's own thread, and on a thread of their own. */
for (const slowCommitMs of [1_000_000, 0.000_1]) {
  describe(`a database with a frozen file (slow commits from ${slowCommitMs} ms on)`, () => {
    let folder: string;
    let database: Database;
    beforeEach(async () => {
      folder = mkdtempSync(join(tmpdir(), 'sandpool-still-'));
      database = await openDatabase(join(folder, 'sandpool.db'), {
        metrics: silentMetrics,
        log: quietLog,
        clock: systemClock(),
        slowCommitMs: () => slowCommitMs,
      });
    });
    afterEach(async () => {
      await database.close();
      rmSync(folder, { recursive: true });
    });

    /** More than SQLite would let wait in its log. */
    const write = async (from: number, count: number): Promise<void> => {
      for (let n = from; n < from + count; n += 1)
        await database.run(
          'templates.create',
          `t${n}`,
          JSON.stringify({ name: `t${n}`, filler: 'x'.repeat(40_000) }),
        );
    };

    const namesIn = (file: string): readonly unknown[] => {
      const copy = connect(file, { busyTimeoutMs: 0 });
      const names = copy
        .prepare('SELECT name FROM templates ORDER BY name')
        .all()
        .map((row: object) => Object.values(row)[0] as unknown);
      copy.close();
      return names;
    };

    it('is complete without its log, accepts writes, and keeps them afterwards', async () => {
      await write(0, 3);
      const copy = join(folder, 'copy.db');
      await database.whileStill(async (file) => {
        await write(3, 200);
        expect(spawnSync('cp', ['--', file, copy]).status).to.equal(0);
      });
      expect(namesIn(copy)).to.deep.equal(['t0', 't1', 't2']);
      expect(await database.run('templates.list')).to.have.length(203);
    });

    it('is copied once at a time, and unfreezes after a failed copy', async () => {
      let end = (): void => {};
      const over = new Promise<void>((resolve) => {
        end = resolve;
      });
      const first = database.whileStill(() => over);
      expect((await rejection(database.whileStill(async () => {}))).message).to.equal(
        'the database is already being copied',
      );
      await write(0, 1);
      end();
      await first;
      expect(
        (
          await rejection(
            database.whileStill(async () => {
              throw new Error('no room');
            }),
          )
        ).message,
      ).to.equal('no room');
      await write(1, 1);
      expect(await database.whileStill(async () => 'copied')).to.equal('copied');
    });
  });
}
