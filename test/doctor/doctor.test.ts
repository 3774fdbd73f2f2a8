import { expect } from 'chai';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { execFileSync } from 'node:child_process';
import { createServer, type Server } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../../src/daemon/config/config.ts';
import type { NamedTexts } from '../../src/daemon/config/environment.ts';
import { examine } from '../../src/daemon/doctor/doctor.ts';
import type { Finding, Patient } from '../../src/daemon/doctor/finding.ts';
import { connect, type Connection } from '../../src/embedded/store/database-library.ts';
import { openDatabase } from '../../src/embedded/store/database.ts';
import { machineTime, systemClock } from '../../src/embedded/system-clock.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { skipBecause } from '../support/harness/skip-because.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

describe('the doctor', function () {
  let folder: string;
  let dataDir: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-doctor-'));
    dataDir = join(folder, 'data');
    mkdirSync(dataDir, { mode: 0o700 });
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const findings = async (
    name: string,
    settings: NamedTexts = {},
    given: Partial<Patient> = {},
  ): Promise<readonly Finding[]> => {
    const { config } = loadConfig({
      env: {},
      argvOptions: { dataDir, listen: '127.0.0.1:0', ...settings },
    });
    const all = await examine({
      config,
      daemon: undefined,
      bwrapPath: '/usr/bin/bwrap',
      launcherPath: process.execPath,
      etc: folder,
      uid: process.getuid?.(),
      ...given,
    });
    for (const { status, advice } of all) expect(advice !== undefined).to.equal(status !== 'ok');
    return all.filter((finding) => finding.name === name);
  };
  const status = async (...args: Parameters<typeof findings>): Promise<string> =>
    (await findings(...args)).map((finding) => finding.status).join();

  const aStore = async (): Promise<string> => {
    const file = join(dataDir, 'sandpool.db');
    const database = await openDatabase(file, {
      metrics: silentMetrics,
      log: quietLog,
      clock: systemClock(),
    });
    await database.run('templates.create', 't', JSON.stringify({ filler: 'x'.repeat(500_000) }));
    await database.close();
    return file;
  };

  it('finds no problems in an empty data folder on a capable machine', async () => {
    for (const name of [
      'node',
      'bubblewrap',
      'sandboxes',
      'launcher',
      'data folder',
      'disk',
      'store',
      'port',
      'clock',
    ])
      expect(await status(name), name).to.equal('ok');
  });

  it('reports missing bubblewrap and launcher', async () => {
    expect((await findings('bubblewrap', {}, { bwrapPath: join(folder, 'none') }))[0]).to.include({
      status: 'problem',
      advice: 'install it: apt-get install bubblewrap',
    });
    expect((await findings('launcher', {}, { launcherPath: join(folder, 'none') }))[0]).to.include({
      status: 'problem',
      advice: 'build it: script/bootstrap',
    });
    expect(await status('sandboxes', { isolation: 'none' })).to.equal('warning');
  });

  it('quotes bubblewrap on why no sandbox can be started', async () => {
    const broken = join(folder, 'bwrap');
    writeFileSync(
      broken,
      '#!/bin/sh\n[ "$1" = --version ] && exit 0\necho "bwrap: No permissions to create new namespace" >&2\nexit 1\n',
      { mode: 0o755 },
    );
    expect((await findings('sandboxes', {}, { bwrapPath: broken }))[0]).to.include({
      status: 'problem',
      message: 'none can be started: bwrap: No permissions to create new namespace',
    });
  });

  it("names limits per user if all sandboxes run as the daemon's user", async () => {
    const [finding] = await findings('shared limits', {}, { uid: 1_000 });
    expect(finding).to.include({
      status: 'warning',
      advice: 'run the daemon as root, so that each sandbox has its own host uid',
    });
    expect(finding?.message).to.match(/uid 1000.*processes.*inotify.*pipes.*message queues/);
    expect(await status('shared limits', {}, { uid: 0 })).to.equal('ok');
    expect(await status('shared limits', { isolation: 'none' }, { uid: 0 })).to.equal('ok');
  });

  it('reports accounts and containers in the range of host uids', async function () {
    if (process.getuid?.() !== 0) skipBecause(this, 'needs root');
    writeFileSync(
      join(folder, 'passwd'),
      'root:x:0:0::/root:/bin/sh\nada:x:2000000005:1::/:/bin/sh\n',
    );
    expect((await findings('uid range'))[0]).to.include({
      status: 'problem',
      message: '2000000000 to 2000065535 holds accounts: ada',
    });
    expect(await status('uid range', { uidRangeFirst: '2000000006' })).to.equal('ok');
    writeFileSync(join(folder, 'passwd'), '');
    writeFileSync(join(folder, 'subuid'), 'bob:1999999000:2000\n');
    expect(await status('uid range')).to.equal('warning');
  });

  it('reports a data folder that is open to others or is not a folder', async () => {
    chmodSync(dataDir, 0o755);
    expect((await findings('data folder'))[0]).to.include({
      status: 'warning',
      advice: `chmod 700 ${dataDir}`,
    });
    writeFileSync(join(folder, 'file'), '');
    expect(await status('data folder', { dataDir: join(folder, 'file') })).to.equal('problem');
  });

  it('reports keys that others can read, and keys without their pepper', async () => {
    mkdirSync(join(dataDir, 'keys'));
    for (const name of ['pepper', 'admin.key', 'tenant.key'])
      writeFileSync(join(dataDir, 'keys', name), 'x', { mode: 0o600 });
    expect(await status('keys')).to.equal('ok');
    chmodSync(join(dataDir, 'keys/admin.key'), 0o644);
    expect((await findings('keys'))[0]?.message)
      .to.include('admin.key')
      .and.not.include('tenant.key');
    rmSync(join(dataDir, 'keys/pepper'));
    expect((await findings('keys'))[0]).to.include({ status: 'problem' });
  });

  it('checks a database that no daemon uses', async () => {
    const file = await aStore();
    expect((await findings('store'))[0]?.message).to.match(/^\d\.\d MiB, sound$/);
    truncateSync(file, 300_000);
    expect(await status('store')).to.equal('problem');
  });

  it('reports a database of a newer version, and a file of another kind', async () => {
    const file = await aStore();
    const newer = connect(file, { busyTimeoutMs: 0 });
    newer.exec('PRAGMA user_version = 9999');
    newer.close();
    expect((await findings('store'))[0]?.message).to.include(
      'a newer version of Sandpool wrote it (schema 9999',
    );
    writeFileSync(file, 'no database'.repeat(1_000));
    expect((await findings('store'))[0]?.message).to.include('not a database');
  });

  it('advises a backup only for a damaged database, not for a locked one or a full disk', async function () {
    const adviceAbout = async (damage: (file: string) => void): Promise<string | undefined> => {
      damage(await aStore());
      return (await findings('store'))[0]?.advice;
    };
    let holder: Connection | undefined;
    expect(
      await adviceAbout((file) => {
        holder = connect(file, { busyTimeoutMs: 0 });
        holder.exec('BEGIN EXCLUSIVE');
      }),
    ).to.equal(`end the program that holds it: fuser -v ${join(dataDir, 'sandpool.db')}`);
    holder?.close();
    expect(await adviceAbout((file) => truncateSync(file, 300_000))).to.equal(
      'restore a backup: sandpool restore FILE',
    );
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'sandpool-test', dataDir], {
        stdio: 'ignore',
      });
    } catch {
      skipBecause(this, 'needs the right to mount a tmpfs');
    }
    try {
      const advice = await adviceAbout((file) => {
        const log = connect(file, { busyTimeoutMs: 0 });
        log.exec('PRAGMA journal_mode = WAL');
        log.close();
        expect(() => writeFileSync(join(dataDir, 'filler'), Buffer.alloc(2 ** 21))).to.throw();
      });
      expect(advice).to.match(/^free space/);
    } finally {
      execFileSync('umount', ['-l', dataDir]);
    }
  });

  it('reports a port in use', async () => {
    const other: Server = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const address = other.address();
    const port = typeof address === 'object' && address ? address.port : 0;
    try {
      const message = `another process listens at 127.0.0.1:${port}`;
      for (const [name, setting] of [
        ['port', 'listen'],
        ['compatible API port', 'compatibleApiListen'],
        ['metrics port', 'metricsListen'],
      ] as const) {
        const [found] = await findings(name, { [setting]: `127.0.0.1:${port}` });
        expect(found, name).to.include({ status: 'problem', message });
        expect(found?.advice).to.match(/; or set (\w+\.)?listen to another address$/);
      }
      const isGiven = () => false;
      expect(
        (await findings('metrics port', { metricsListen: `127.0.0.1:${port}` }, { isGiven }))[0],
      ).to.include({ status: 'warning', message: `${message}; the daemon starts without it` });
      expect(await status('metrics port', { metricsListen: 'none' })).to.equal('');
    } finally {
      other.close();
    }
    expect(await status('port', { listen: '192.0.2.1:80' })).to.equal('problem');
  });

  it('reports a clock that went back', async () => {
    const later = new Date(Date.now() + 3_600_000);
    writeFileSync(join(dataDir, 'daemon.json'), '{}');
    utimesSync(join(dataDir, 'daemon.json'), later, later);
    expect((await findings('clock'))[0]?.status).to.equal('warning');
  });

  it('shows the command for a clock that was wrong at the first start', async () => {
    const { uptimeMs, bootId } = machineTime();
    const at = Date.now() - 7_200_000;
    writeFileSync(join(dataDir, 'clock.json'), JSON.stringify({ bootId, uptimeMs, at }));
    const [finding] = await findings('clock');
    expect(finding?.message).to.match(/^the daemon’s is 7[12]\d\d s behind the machine’s, /);
    expect(finding).to.include({
      status: 'warning',
      advice: `if the machine’s is right: sandpool stop && rm ${dataDir}/clock.json && sandpool serve`,
    });
  });

  it('reports a daemon that does not answer', async () => {
    const silent: Server = createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const address = silent.address();
    const daemon = {
      address: `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`,
      pid: 1,
      startTime: '1',
      bootId: 'x',
    };
    expect((await findings('daemon', {}, { daemon }))[0]).to.include({ status: 'problem' });
    silent.close();
  });
});
