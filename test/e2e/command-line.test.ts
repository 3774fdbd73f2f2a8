import { expect } from 'chai';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { randomBytes } from 'node:crypto';
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  readlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePorts } from '../../local-cluster/control-plane/free-ports.ts';
import { rememberChild } from '../../local-cluster/started-processes.ts';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import { aTemplateFolder, claim, giveBack } from '../support/harness/on-a-daemon.ts';
import type { HttpClient } from '../support/harness/http-client.ts';
import { line } from '../support/harness/line.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

describe('the command line with a real daemon', function () {
  const templates = aTemplateFolder({
    talker: {
      containers: [
        {
          name: 'main',
          image: 'host',
          command: [
            '/bin/sh',
            '-c',
            'echo first; echo second; while [ ! -e /tmp/go ]; do sleep 0.05; done; echo third; sleep 1000',
          ],
        },
      ],
    },
  });
  let daemon: DaemonUnderTest;
  let client: HttpClient;
  let folder: string;
  before(async () => {
    const [port] = await freePorts(1); // that it has again after it was started anew
    daemon = await DaemonUnderTest.start(line`--default-pool-replicas 3
      --templates-dir ${templates.folder} --listen 127.0.0.1:${port}`);
    client = daemon.client();
    folder = mkdtempSync(join(tmpdir(), 'sandpool-cli-e2e-'));
  });
  after(async () => {
    await daemon.dispose();
    templates.remove();
    rmSync(folder, { recursive: true });
  });

  /** A command that goes on, and what it has printed so far. */
  const started = (...args: readonly string[]) => {
    const child = spawn(process.execPath, [join(ROOT, 'dist/cli/main.js'), ...args], {
      env: { ...process.env, SANDPOOL_DATA_DIR: daemon.dataDir },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    rememberChild(`sandpool ${args.join(' ')}`, child, () => text);
    return { child, text: () => text, ended: once(child, 'close').then(([code]) => Number(code)) };
  };

  it('reports no problems with doctor before, during and after a run of the daemon', async () => {
    const running = await daemon.cli(['doctor', '-o', 'json']);
    const { good, findings } = JSON.parse(running.stdout);
    expect([running.code, running.stderr, good]).to.deep.equal([0, '', true]);
    expect(findings.find(({ name }: { name: string }) => name === 'daemon').message).to.match(
      /^http:\/\/127\.0\.0\.1:\d+ \(pid \d+\)$/,
    );
    expect(findings.map(({ name }: { name: string }) => name))
      .to.include.members(['spawner', 'tenant key', 'store'])
      .and.not.include('port');
    await daemon.stop();
    const stopped = await daemon.cli(['doctor', '--listen', '127.0.0.1:0']);
    expect(stopped.stdout)
      .to.match(/^ok +daemon +none runs on /m)
      .and.match(/^ok +store +\d+\.\d MiB, sound$/m);
    expect(stopped.code).to.equal(0);
    await daemon.start();
    client = daemon.client();
  });

  it('copies files and folders into a sandbox and back with cp', async () => {
    const id = await claim(client);
    const bytes = randomBytes(1_300_000);
    mkdirSync(join(folder, 'tree/a b'), { recursive: true });
    writeFileSync(join(folder, 'tree/a b/data'), bytes);
    symlinkSync('a b/data', join(folder, 'tree/link'));
    for (const args of [
      [join(folder, 'tree'), `${id}:/tmp/`],
      [`${id}:/tmp/tree`, join(folder, 'back')],
      [join(folder, 'tree/a b/data'), `${id}:note`],
      [`${id}:note`, join(folder, 'note')],
    ]) {
      expect(await daemon.cli(['cp', ...args])).to.deep.equal({ code: 0, stdout: '', stderr: '' });
    }
    for (const copy of ['back/a b/data', 'note'])
      expect(readFileSync(join(folder, copy)).equals(bytes)).to.equal(true);
    expect(readlinkSync(join(folder, 'back/link'))).to.equal('a b/data');
    expect((await daemon.cli(['exec', id, '--', 'ls', '-A', '/tmp'])).stdout).to.equal('tree\n');
    await daemon.cli(['exec', id, '--', 'mkfifo', '/tmp/tree/pipe']);
    await daemon.cli(['exec', id, '--', 'ln', '-s', '/etc/hostname', '/tmp/tree/out']);
    const again = await daemon.cli(['cp', '-r', `${id}:/tmp/tree`, join(folder, 'again')]);
    expect([again.code, again.stdout, again.stderr.trim().split('\n').sort()]).to.deep.equal([
      0,
      '',
      [
        'sandpool: skipped out, which is a link that leads out of the folder, to /etc/hostname',
        'sandpool: skipped pipe, which is neither a file, a folder nor a link',
      ],
    ]);
    expect((await daemon.cli(['cp', join(folder, 'again'), `${id}:/tmp/deep/er`])).stderr).to.equal(
      '',
    );
    expect((await daemon.cli(['exec', id, '--', 'ls', '/tmp/deep/er'])).stdout).to.equal(
      'a b\nlink\n',
    );
    await giveBack(client, id);
  });

  it('reports a full sandbox during cp, and leaves nothing behind there', async () => {
    await client.post('/sandboxpools', {
      name: 'small',
      templateName: 'default',
      memory: '64Mi',
      replicas: 1,
    });
    const id = await claim(client, 'small');
    // an eighth of the memory is for /tmp
    writeFileSync(join(folder, 'large'), Buffer.alloc(12 * 2 ** 20));
    const end = await daemon.cli(['cp', join(folder, 'large'), `${id}:/tmp/large`]);
    expect(end.code).to.equal(1);
    expect(end.stderr)
      .to.match(/^sandpool: the sandbox has no space left; existing data is unchanged/)
      .and.match(/\n {2}most files of a sandbox are in memory/)
      .and.include('\n  /tmp/large in the sandbox is unchanged\n');
    expect((await daemon.cli(['exec', id, '--', 'ls', '-A', '/tmp'])).stdout).to.equal('');
    await giveBack(client, id);
  });

  it('shows the output of a sandbox with logs, and follows it to its end', async () => {
    await client.post('/sandboxpools', { name: 'talkers', templateName: 'talker', replicas: 1 });
    const id = await claim(client, 'talkers');
    await within(
      'both lines are there',
      async () => (await client.get(`/sandboxes/${id}/logs`)).text.includes('second') || undefined,
    );
    expect(await daemon.cli(['logs', id])).to.deep.equal({
      code: 0,
      stdout: 'first\nsecond\n',
      stderr: '',
    });
    expect((await daemon.cli(['logs', '--tail', '1', id])).stdout).to.equal('second\n');
    expect((await daemon.cli(['logs', '--timestamps', '--since', '10m', id])).stdout).to.match(
      /^\d{4}-\d\d-\d\dT[\d:.]+Z first\n/,
    );
    const following = started('logs', '-f', id);
    await within('the first lines', () => following.text() === 'first\nsecond\n' || undefined);
    await daemon.cli(['exec', id, '--', 'touch', '/tmp/go']);
    await within('the third line', () => following.text().endsWith('third\n') || undefined);
    await giveBack(client, id);
    expect(await following.ended).to.equal(0);
    expect((await daemon.cli(['logs', id])).stdout).to.equal('first\nsecond\nthird\n');
    expect((await daemon.cli(['logs', '0190d4a5-7b1e-7c3a-9f00-00000000dead'])).code).to.equal(1);
  });

  it('shows the events of a sandbox with events, and follows them', async () => {
    const following = started('events', '-f', '-o', 'json');
    const id = await within('an event', async () => {
      const claimed = await claim(client);
      return following.text().includes(claimed)
        ? claimed
        : await giveBack(client, claimed).then(() => undefined);
    });
    const ofOne = started('events', '-f', id);
    await within('its past', () => /Normal +Claimed/.test(ofOne.text()) || undefined);
    await giveBack(client, id);
    expect(await ofOne.ended).to.equal(0);
    expect(
      ofOne
        .text()
        .trim()
        .split('\n')
        .map((line) => line.split(/ +/)[2]),
    ).to.include.members(['Claimed', 'Killing', 'Completed']);
    const list = await daemon.cli(['events', id]);
    expect(list.stdout.split('\n')[0]).to.match(/^TIME +TYPE +REASON +MESSAGE$/);
    expect(list.stdout).to.include(' Claimed ').and.include(' Completed ');
    following.child.kill('SIGINT');
    expect(await following.ended).to.equal(130);
    for (const line of following.text().trim().split('\n'))
      expect(JSON.parse(line)).to.include.keys('time', 'reason');
    expect((await daemon.cli(['events'])).stderr).to.include(
      'name a sandbox or a pool, or follow events with -f',
    );
  });

  it('continues with events after a restart of the daemon', async () => {
    const following = started('events', '-f');
    const first = await within('an event', async () => {
      const claimed = await claim(client);
      return following.text().includes(claimed)
        ? claimed
        : await giveBack(client, claimed).then(() => undefined);
    });
    await giveBack(client, first);
    await daemon.stop();
    await daemon.start();
    client = daemon.client();
    await within('an event of the new one', async () => {
      const claimed = await claim(client);
      await giveBack(client, claimed);
      return following.text().includes(claimed) || undefined;
    });
    following.child.kill('SIGINT');
    expect(await following.ended).to.equal(130);
  });
});
