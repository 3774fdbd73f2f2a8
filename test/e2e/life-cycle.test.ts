import { expect } from 'chai';
import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import type { HttpClient } from '../support/harness/http-client.ts';
import { instancesWithProcesses, spawnerPid } from '../support/chaos/kill-rounds.ts';
import { clear, finished } from '../support/harness/on-a-daemon.ts';
import { initOf } from '../support/harness/seen-from-the-host.ts';
import { skipBecause } from '../support/harness/skip-because.ts';

const claim = async (client: HttpClient): Promise<string> =>
  await within(
    'a claim',
    async () =>
      (await client.post('/sandboxes', { poolName: 'default' })).json.sandbox?.['sandboxId'],
  );

const run = async (client: HttpClient, id: string, command: string): Promise<string> =>
  (await client.post(`/sandboxes/${id}/exec`, { command })).json.stdout ?? '';

describe('a daemon from start to end', () => {
  let daemon: DaemonUnderTest;

  before(async () => {
    daemon = await DaemonUnderTest.start();
  });
  after(() => daemon.dispose());
  beforeEach(() => clear(daemon.client()));

  it('hides keys, data folder and pepper from other users', () => {
    for (const [path, mode] of [
      ['', 0o700],
      ['keys', 0o700],
      ['keys/tenant.key', 0o600],
      ['keys/admin.key', 0o600],
      ['keys/pepper', 0o600],
      ['sandpool.db', 0o600],
    ] as const) {
      expect(statSync(join(daemon.dataDir, path)).mode & 0o777 & ~mode, path).to.equal(0);
    }
  });

  it('stops with its helpers on SIGTERM, keeps sandboxes, and finds them again', async () => {
    const client = daemon.client();
    const id = await claim(client);
    await run(client, id, 'echo here > /tmp/mark');
    const { stdout } = daemon.run;
    expect(await daemon.stop()).to.equal(0);
    expect(stdout())
      .to.match(/sandboxes are left/)
      .and.to.include('stop --all');
    await within(
      'the spawner is gone',
      () => spawnerPid(daemon.dataDir) === undefined || undefined,
    );
    expect(instancesWithProcesses(daemon.dataDir)).to.include(id);
    await daemon.start();
    expect(await run(daemon.client(), id, 'cat /tmp/mark')).to.equal('here\n');

    // Its exit code is not known of an instance that was found again.
    process.kill(initOf(daemon.dataDir, id), 'SIGKILL');
    expect((await finished(daemon.client(), id))['endReason']).to.equal('lost');
  });

  it('ends everything with stop --all, and starts again with the same keys and pools', async function () {
    const id = await claim(daemon.client());
    const key = daemon.tenantKey;
    const { code } = await daemon.cliProcess(['stop', '--all']);
    expect(code).to.equal(0);
    expect(instancesWithProcesses(daemon.dataDir).size).to.equal(0);
    await daemon.start();
    expect(daemon.tenantKey).to.equal(key);
    const client = daemon.client();
    expect((await client.get(`/sandboxes/${id}`)).status).to.equal(404);
    expect((await client.get('/sandboxes')).json.items?.[0]).to.include({
      sandboxId: id,
      status: 'Completed',
      endReason: 'deleted',
    });
    await claim(client);
  });

  it('shows why a sandbox ended whose main process exited, and replaces it', async () => {
    const client = daemon.client();
    const id = await claim(client);
    process.kill(initOf(daemon.dataDir, id), 'SIGKILL');
    expect((await finished(client, id))['endReason']).to.equal('exited');
    await within(
      'a full pool',
      async () =>
        (
          (await client.get('/sandboxpools/default')).json.template?.['status'] as
            | { idleReplicas?: number }
            | undefined
        )?.idleReplicas === 4 || undefined,
    );
  });

  it('starts a new spawner when the old one is killed', async () => {
    const client = daemon.client();
    const id = await claim(client);
    await run(client, id, 'echo here > /tmp/mark');
    const before = spawnerPid(daemon.dataDir);
    if (before === undefined) throw new Error('there is no spawner');
    process.kill(before, 'SIGKILL');
    const mark = await within(
      'it answers again',
      async () => (await run(client, id, 'cat /tmp/mark')) || undefined,
    );
    expect(mark).to.equal('here\n');
    expect(spawnerPid(daemon.dataDir)).to.not.equal(before);
  });

  it('reports that its clock was wrong at its first start, as long as it uses it', async () => {
    await daemon.stop();
    const file = join(daemon.dataDir, 'clock.json');
    const seen = JSON.parse(readFileSync(file, 'utf8')) as { at: number };
    writeFileSync(file, JSON.stringify({ ...seen, at: seen.at + 7_200_000 }));
    await daemon.start();
    expect((await daemon.client().get('/readyz')).text).to.match(
      /"the daemon's clock is 7[12]\d\d s ahead of the machine's: sandpool doctor says what to do"/,
    );
  });

  it('is not ready, with the reason, while its data folder is missing', async () => {
    const client = daemon.client();
    const away = `${daemon.dataDir}-away`;
    renameSync(daemon.dataDir, away);
    try {
      const { status, text } = await client.get('/readyz');
      expect(status).to.equal(503);
      expect(text).to.match(/"the data folder cannot be accessed: Error: ENOENT[^"]*"/);
    } finally {
      renameSync(away, daemon.dataDir);
    }
    expect((await client.get('/readyz')).status).to.equal(200);
  });

  it('logs no secrets', async () => {
    const client = daemon.client();
    await client.get('/sandboxes', { key: `${daemon.tenantKey}x` });
    await client.post('/api-keys', {});
    const { stderr, stdout } = daemon.run;
    await daemon.stop();
    const secret = daemon.tenantKey.split('_')[2] ?? 'none';
    expect(stderr() + stdout()).to.not.include(secret.slice(0, 20));
  });
});

describe('a full disk', () => {
  let folder: string;

  before(function () {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-small-'));
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=6m', 'tmpfs', folder]);
    } catch {
      rmSync(folder, { recursive: true, maxRetries: 5 });
      skipBecause(this, 'this user may not mount a small disk');
    }
  });

  after(() => {
    execFileSync('umount', ['-l', folder]);
    rmSync(folder, { recursive: true, maxRetries: 5 });
  });

  it('is reported in advance, stops the daemon with a clear message, and loses nothing acknowledged', async function () {
    const daemon = await DaemonUnderTest.start(['--default-pool-replicas', '2'], folder);
    const readiness = async (): Promise<readonly [number, string]> => {
      const { status, text } = await daemon.client().get('/readyz');
      return [status, text];
    };
    try {
      expect((await readiness())[0]).to.equal(200);
      const client = daemon.client();
      const held = [await claim(client), await claim(client)];
      mkdirSync(join(folder, 'ballast'));
      try {
        for (let i = 0; ; i++)
          writeFileSync(join(folder, 'ballast', String(i)), Buffer.alloc(4_096));
      } catch (error) {
        expect(error).to.have.property('code', 'ENOSPC');
      }
      const [status, text] = await readiness();
      expect(status).to.equal(503);
      expect(text).to.match(/"problems":\["the disk of the data folder is full: 0\.\d MiB free"\]/);
      const { stderr, process: child } = daemon.run;
      // Each of these writes; the log of the database has some room left before it has to grow.
      for (let i = 0; i < 2_000 && child.exitCode === null; i++) {
        await client
          .put(`/sandboxes/${held[i % 2]}/idle-timeout`, { idleTimeoutSeconds: 600 + i })
          .catch(() => undefined);
      }
      await within('the daemon stops', () => child.exitCode ?? undefined);
      expect(child.exitCode).to.equal(1);
      await within(
        'it says why',
        () => /Sandpool stops: .*(full|disk|space)/i.test(stderr()) || undefined,
      );
      rmSync(join(folder, 'ballast'), { recursive: true, maxRetries: 5 });
      await daemon.stop();
      await daemon.start();
      expect((await readiness())[0]).to.equal(200);
      for (const id of held)
        expect((await daemon.client().get(`/sandboxes/${id}`)).json.sandbox?.['status']).to.equal(
          'Running',
        );
    } finally {
      rmSync(join(folder, 'ballast'), { recursive: true, force: true, maxRetries: 5 });
      await daemon.dispose();
    }
  });
});
