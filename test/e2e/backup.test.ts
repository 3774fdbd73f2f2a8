import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '../../src/embedded/store/database-library.ts';
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';
import { skipBecause } from '../support/harness/skip-because.ts';
import { aTenant, claim, finished, run, stocked } from '../support/harness/on-a-daemon.ts';

describe('a backup of a running daemon', function () {
  let daemon: DaemonUnderTest;
  let folder: string;
  let file: string;
  before(async () => {
    daemon = await DaemonUnderTest.start([
      ...['--default-pool-replicas', '2', '--role', 'manager', '--cluster-id', 'hub'],
    ]);
  });
  after(() => daemon.dispose());
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-backup-'));
    file = join(folder, 'backup.tar.gz');
  });
  afterEach(() => rmSync(folder, { recursive: true, maxRetries: 5 }));

  const unpacked = (archive = file): string => {
    const into = join(folder, 'unpacked');
    mkdirSync(into);
    expect(spawnSync('tar', ['-xzf', archive, '-C', into]).status).to.equal(0);
    return into;
  };

  it('is complete and private, and leaves nothing behind in the data folder', async () => {
    const end = await daemon.cli(['backup', file]);
    expect([end.code, end.stderr]).to.deep.equal([0, '']);
    expect(end.stdout).to.match(/backup\.tar\.gz: \d+(\.\d)? (B|KiB|MiB)\n$/);
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    expect(readdirSync(folder)).to.deep.equal(['backup.tar.gz']);
    const found = unpacked();
    expect([readdirSync(found).sort(), readdirSync(join(found, 'keys')).sort()]).to.deep.equal([
      ['fleet', 'keys', 'sandpool.db'],
      ['admin.key', 'pepper', 'tenant.key'],
    ]);
    for (const name of ['sandpool.db', 'keys/pepper', 'keys/admin.key', 'fleet/manager.json'])
      expect(statSync(join(found, name)).mode & 0o777).to.equal(0o600);
    expect(existsSync(join(daemon.dataDir, 'backup'))).to.equal(false);
  });

  it('is consistent during claims, deletions and key creations, with all earlier acknowledged changes', async () => {
    const admin = daemon.client(daemon.adminKey);
    const before =
      (await admin.post('/api-keys', { name: `before-${Date.now()}` })).json.keyId ?? '';
    let going = true;
    let made = 0;
    const writes = Array.from({ length: 4 }, async () => {
      while (going) {
        const { json, status } = await admin.post('/api-keys', { description: 'x'.repeat(1_000) });
        if (status !== 201) throw new Error(`a key: ${status}`);
        made += 1;
        await admin.delete(`/api-keys/${json.keyId ?? ''}`);
      }
    });
    for (let round = 0; round < 3; round += 1) {
      const [seen, end] = [made, await daemon.cli(['backup', file])];
      expect([end.code, end.stderr]).to.deep.equal([0, '']);
      expect(made).to.be.greaterThan(seen);
      const found = unpacked();
      const database = connect(join(found, 'sandpool.db'), { busyTimeoutMs: 0 });
      expect(database.prepare('PRAGMA integrity_check').all()).to.deep.equal([
        { integrity_check: 'ok' },
      ]);
      expect(
        database.prepare('SELECT count(*) AS n FROM api_keys WHERE key_id = ?').get(before),
      ).to.deep.equal({ n: 1 });
      database.close();
      rmSync(found, { recursive: true, maxRetries: 5 });
    }
    going = false;
    await Promise.all(writes);
  });

  it('restores a working data folder with keys, pools and finished sandboxes', async () => {
    const tenant = await aTenant(daemon, 'blue', 'ada');
    await tenant.post('/sandboxpools', { name: 'kept', templateName: 'default', replicas: 1 });
    await stocked(tenant, 1, 'kept');
    const running = await claim(tenant, 'kept');
    const { json: key } = await tenant.post('/api-keys', { name: 'mine' });
    const { tenantKey } = daemon;
    const { stdout: joinToken } = await daemon.cli(['clusters', 'join-token', 'west']);
    expect((await daemon.cli(['backup', file])).code).to.equal(0);

    await daemon.cli(['stop', '--all']);
    for (const name of readdirSync(daemon.dataDir))
      rmSync(join(daemon.dataDir, name), { recursive: true, maxRetries: 5 });
    expect(await daemon.cli(['restore', file])).to.include({ code: 0, stderr: '' });
    await daemon.start();

    expect(daemon.tenantKey).to.equal(tenantKey);
    const { stdout: another } = await daemon.cli(['clusters', 'join-token', 'west']);
    expect(another.split('.')[1]).to.equal(joinToken.split('.')[1]); // the same manager
    expect((await daemon.cli(['clusters'])).stdout).to.match(/^west +/m);
    const restored = daemon.client(key.apiKey ?? '');
    await stocked(restored, 1, 'kept');
    expect(await finished(restored, running)).to.include({ endReason: 'lost' });
    const again = await claim(restored, 'kept');
    expect((await run(restored, again, 'echo hello')).stdout).to.equal('hello\n');
  });

  it('keeps running sandboxes if it is restored over the folder of a killed daemon', async () => {
    const tenant = daemon.client();
    await stocked(tenant, 2);
    const running = await claim(tenant);
    const started = await tenant.post(`/sandboxes/${running}/processes`, {
      command: ['sleep', '86400'],
    });
    expect(started.status).to.equal(201);
    await run(tenant, running, 'echo kept > /tmp/note');
    await stocked(tenant, 1);
    expect((await daemon.cli(['backup', file])).code).to.equal(0);
    const idleThen = await claim(tenant);
    expect(await daemon.cli(['restore', file])).to.deep.equal({
      code: 1,
      stdout: '',
      stderr:
        `sandpool: a daemon runs on the data folder ${daemon.dataDir}\n` +
        '  stop it first: sandpool stop\n',
    });

    await daemon.kill();
    const end = await daemon.cli(['restore', file]);
    expect([end.code, end.stderr]).to.deep.equal([0, '']);
    const aside = /replaced files: (.*)\n/.exec(end.stdout)?.[1] ?? '';
    expect(readdirSync(aside)).to.include.members(['fleet', 'keys', 'sandpool.db']);
    await daemon.start();

    const again = daemon.client();
    expect((await run(again, running, 'cat /tmp/note; pgrep -fc "^sleep 86400"')).stdout).to.equal(
      'kept\n1\n',
    );
    // Somebody claimed this one after the backup: it must never be handed out to another.
    const next = await claim(again);
    expect(next).to.not.equal(idleThen);
    for (const id of [running, next]) await again.delete(`/sandboxes/${id}`);
  });

  it('does not replace a sound data folder if it is truncated', async () => {
    expect((await daemon.cli(['backup', file])).code).to.equal(0);
    const whole = readFileSync(file);
    await daemon.stop();
    for (const [bytes, fault] of [
      [whole.subarray(0, -1_000), 'it ends too early'],
      [Buffer.from('no archive'), 'it is not a gzipped tar'],
    ] as const) {
      writeFileSync(file, bytes);
      const end = await daemon.cli(['restore', file]);
      expect([end.code, end.stderr.split('\n')[0]]).to.deep.equal([
        1,
        `sandpool: ${file} can’t be restored: ${fault}`,
      ]);
    }
    const missing = await daemon.cli(['restore', `${file}.missing`]);
    expect(missing.stderr).to.include(`${file}.missing can’t be restored: ENOENT`);
    expect(readdirSync(daemon.dataDir).filter((name) => name.startsWith('restor'))).to.deep.equal(
      [],
    );
    await daemon.start();
    expect((await daemon.client().get('/sandboxpools')).status).to.equal(200);
  });

  it('blocks the daemon while it is half restored, until it is restored again', async () => {
    const { tenantKey } = daemon;
    const id = await claim(daemon.client());
    expect((await daemon.cli(['backup', file])).code).to.equal(0);
    await daemon.stop();
    // The database has been moved aside, and none has come in its place.
    const killed = `import fs from 'node:fs'; import { syncBuiltinESMExports } from 'node:module';
      const rename = fs.renameSync;
      fs.renameSync = (...paths) => { rename(...paths); process.kill(process.pid, 'SIGKILL'); };
      syncBuiltinESMExports();`;
    const program = (words: readonly string[], args: readonly string[]) =>
      spawnSync(
        process.execPath,
        [...args, 'dist/cli/main.js', ...words, '--data-dir', daemon.dataDir],
        { encoding: 'utf8', timeout: 20_000 },
      );
    const preload = ['--import', `data:text/javascript,${encodeURIComponent(killed)}`];
    expect(program(['restore', file], preload).signal).to.equal('SIGKILL');

    const start = program(['serve', '--listen', '127.0.0.1:0'], []);
    expect(start.status).to.equal(1);
    expect((await daemon.cli(['doctor'])).stdout).to.include('a restore of');
    expect(start.stderr).to.include(
      `a restore of ${daemon.dataDir} was interrupted: run sandpool restore FILE again`,
    );
    expect(await daemon.cli(['restore', file])).to.include({ code: 0, stderr: '' });
    await daemon.start();

    expect(daemon.tenantKey).to.equal(tenantKey);
    expect((await run(daemon.client(), id, 'echo hello')).stdout).to.equal('hello\n');
    await daemon.client().delete(`/sandboxes/${id}`);
  });

  it('can go to the standard output, and explains errors', async () => {
    const piped = spawnSync(
      '/bin/sh',
      [
        '-c',
        `"${process.execPath}" dist/cli/main.js backup - --data-dir "${daemon.dataDir}" | tar -tz`,
      ],
      { encoding: 'utf8' },
    );
    expect(piped.stdout.trim().split('\n')).to.include.members(['keys/pepper', 'sandpool.db']);
    const nowhere = await daemon.cli(['backup', join(folder, 'no/such/file')]);
    expect([nowhere.code, nowhere.stderr]).to.deep.equal([
      1,
      `sandpool: ${folder}/no/such/file can’t be written: ENOENT: no such file or directory, open '${folder}/no/such/.file.sandpool-${/-(\d+)'/.exec(nowhere.stderr)?.[1] ?? ''}'\n`,
    ]);
    const empty = mkdtempSync(join(tmpdir(), 'sandpool-empty-'));
    const away = await daemon.cli(['backup', file, '--data-dir', empty]);
    expect([away.code, away.stderr.split('\n')[0]]).to.deep.equal([
      1,
      `sandpool: no daemon is running on the data folder ${empty}`,
    ]);
    rmSync(empty, { recursive: true, maxRetries: 5 });
    expect(readdirSync(folder)).to.deep.equal([]);
  });

  it('cannot be restored over a mount point, with the remedy', async function () {
    expect((await daemon.cli(['backup', file])).code).to.equal(0);
    const keys = join(folder, 'data/keys');
    mkdirSync(keys, { recursive: true });
    if (spawnSync('mount', ['-t', 'tmpfs', 'tmpfs', keys]).status !== 0)
      skipBecause(this, 'this user may mount nothing');
    try {
      const end = await daemon.cli(['restore', file, '--data-dir', join(folder, 'data')]);
      expect(end.code).to.equal(1);
      expect(end.stderr).to.include(
        `nothing was replaced; ${keys} is a mount point, which can’t be moved: unmount it`,
      );
    } finally {
      spawnSync('umount', [keys]);
    }
  });

  it('works in a folder too long for the path of a socket', async () => {
    const deep = join(folder, 'd'.repeat(100), 'e'.repeat(40));
    mkdirSync(deep, { recursive: true });
    const other = await DaemonUnderTest.start(['--default-pool-replicas', '0'], deep);
    try {
      expect((await other.cli(['backup', file])).code).to.equal(0);
      writeFileSync(join(folder, 'list'), spawnSync('tar', ['-tzf', file]).stdout);
      expect(readFileSync(join(folder, 'list'), 'utf8')).to.include('sandpool.db');
    } finally {
      await other.dispose();
    }
  });
});
