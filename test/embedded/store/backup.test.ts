import { expect } from 'chai';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { embeddedBackup, type BackupDeps } from '../../../src/embedded/store/backup.ts';
import { systemClock } from '../../../src/embedded/system-clock.ts';
import { eventually } from '../../support/harness/eventually.ts';
import { rejection } from '../../support/harness/rejection.ts';

describe('a cancelled backup', () => {
  let dataDir: string;
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'sandpool-backup-'));
  });
  afterEach(() => rmSync(dataDir, { recursive: true }));

  const children = (): string => readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8');
  const backupOf = (whileStill: BackupDeps['database']['whileStill']) =>
    embeddedBackup({ database: { whileStill }, dataDir, clock: systemClock() });

  it('ends the copying process, and leaves no copy', async () => {
    const before = children();
    const endless = join(dataDir, 'endless');
    execFileSync('mkfifo', [endless]);
    let copying = '';
    const backup = backupOf(async (work) => {
      try {
        return await work(endless);
      } finally {
        copying = children();
      }
    });
    const stop = new AbortController();
    const failed = rejection(backup(stop.signal));
    await eventually(() => children() !== before, 'the process runs');
    stop.abort();

    expect((await failed).name).to.equal('AbortError');
    expect(copying).to.equal(before);
    expect(existsSync(join(dataDir, 'backup'))).to.equal(false);
  });

  it('removes its copy when its stream closes', async () => {
    const database = join(dataDir, 'database');
    writeFileSync(database, 'x'.repeat(1_000));
    const stop = new AbortController();
    const stream = await backupOf((work) => work(database))(stop.signal);
    expect(existsSync(join(dataDir, 'backup'))).to.equal(true);
    stream.on('error', () => {});
    const closed = new Promise((resolve) => stream.once('close', resolve));
    stop.abort();
    await closed;

    expect(existsSync(join(dataDir, 'backup'))).to.equal(false);
  });

  it('does not count as a fault of the daemon', async () => {
    const database = join(dataDir, 'database');
    writeFileSync(database, randomBytes(4 << 20));
    const stop = new AbortController();
    const reader = new PassThrough();
    reader.once('close', () => stop.abort());
    const sent = pipeline(await backupOf((work) => work(database))(stop.signal), reader);
    reader.once('data', () => reader.destroy());

    // which of the two ends comes first is Node's
    expect((await rejection(sent)).message).to.match(/^(Premature close|called off)$/);
    await eventually(() => !existsSync(join(dataDir, 'backup')), 'its copy is removed');
  });
});
