import { expect } from 'chai';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { readPidFile } from '../../src/daemon/process/pid-file.ts';
import { formatApiKey, newApiKeyText } from '../../src/model/api-key-text.ts';
import { freePorts } from '../../local-cluster/control-plane/free-ports.ts';
import { rememberChild } from '../../local-cluster/started-processes.ts';
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';
import { programOf } from '../support/harness/built-program.ts';
import { eventually } from '../support/harness/eventually.ts';
import { stocked } from '../support/harness/on-a-daemon.ts';
import { spawnerPid } from '../support/chaos/kill-rounds.ts';

/** Whether this process, and so what it starts, has CAP_SYS_NICE. */
const mayHavePriority = (): boolean => {
  const [, capabilities = '0'] =
    /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return ((BigInt(`0x${capabilities}`) >> 23n) & 1n) === 1n;
};

describe('sandpool serve', () => {
  let daemon: DaemonUnderTest;
  before(async () => {
    daemon = await DaemonUnderTest.start(['--default-pool-replicas', '4']);
  });
  after(() => daemon.dispose());

  it('prints its address and the key files, and refuses a second start on its data folder', async () => {
    const { dataDir, run: first } = daemon;
    const address = /ready at (http:\/\/127\.0\.0\.1:\d+)/.exec(first.stdout())?.[1];

    const second = await daemon.cliProcess(['serve', '--listen', '127.0.0.1:0']);

    expect(second.code).to.equal(1);
    expect(second.stderr).to.include(
      `A daemon already runs on ${dataDir}: ${address} (pid ${first.process.pid})`,
    );
    expect(readPidFile(dataDir)?.address).to.equal(address);
    expect(readFileSync(join(dataDir, 'keys/tenant.key'), 'utf8')).to.match(/^spk_/);
    expect(first.stdout())
      .to.include(`cat ${dataDir}/keys/tenant.key`)
      .and.include('run -- uname -a');
    expect((await fetch(`${address}/healthz`)).status).to.equal(200);
  });

  it('starts no sandbox if its address is in use, and names the setting', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sandpool-taken-'));
    const taken = `127.0.0.1:${daemon.run.port}`;
    try {
      const second = await daemon.cliProcess([
        ...['serve', '--data-dir', folder, '--listen', taken, '--metrics-listen', 'none'],
        ...['--compatible-api-listen', 'none', '--default-pool-replicas', '1'],
      ]);
      expect(second.code).to.equal(1);
      expect(second.stderr)
        .to.include(`address already in use ${taken}`)
        .and.include('choose another one: --listen HOST:PORT');
      expect(existsSync(join(folder, 'run')), 'there are sandboxes').to.equal(false);
    } finally {
      await daemon.cli(['stop', '--all', '--data-dir', folder]);
      rmSync(folder, { recursive: true, maxRetries: 5 });
    }
  });

  it('has a better scheduling priority if allowed, which its sandboxes do not inherit', () => {
    const [usual, spawner] = [getPriority(), spawnerPid(daemon.dataDir)];
    const first = usual === 0 && mayHavePriority() ? -5 : usual;

    expect(getPriority(daemon.run.process.pid)).to.equal(first);
    expect(spawner && getPriority(spawner)).to.equal(usual);
  });

  it('stops at SIGINT and SIGTERM, keeps its sandboxes, and prints their number', async () => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      const run = signal === 'SIGINT' ? daemon.run : await daemon.start();
      await stocked(daemon.client(), 4);

      expect(await daemon.stop(signal), signal).to.equal(0);
      expect(run.stdout(), signal).to.match(/4 sandboxes are left .* stop --all/);
      expect(readPidFile(daemon.dataDir), signal).to.equal(undefined);
    }
  });
});

describe('sandpool serve without a daemon in the data folder', () => {
  let dataDir: string;
  let child: ChildProcess | undefined;
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'serve-'));
  });
  afterEach(async () => {
    if (child && child.exitCode === null && child.signalCode === null) {
      const end = once(child, 'close');
      child.kill('SIGKILL');
      await end;
    }
    rmSync(dataDir, { recursive: true, force: true });
  });

  const command = (...args: string[]) => {
    const [program = '', ...before] = programOf('cli/main');
    const started = spawn(program, [...before, ...args, '--data-dir', dataDir], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    child = started;
    const said = { err: '' };
    started.stderr.setEncoding('utf8').on('data', (text: string) => {
      said.err += text;
    });
    rememberChild(`sandpool ${args.join(' ')}`, started, () => said.err);
    const end = once(started, 'close').then(([code]: unknown[]) => code);
    return { child: started, said, end };
  };

  it('waits for a missing API server, reports it in log and readiness, and stops with 0', async () => {
    const [awayPort] = await freePorts(1);
    const kubeconfig = join(dataDir, 'kubeconfig');
    writeFileSync(
      kubeconfig,
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        'current-context': 'c',
        clusters: [{ name: 'c', cluster: { server: `https://127.0.0.1:${awayPort}` } }],
        users: [{ name: 'c', user: { token: 't' } }],
        contexts: [{ name: 'c', context: { cluster: 'c', user: 'c' } }],
      }),
    );
    writeFileSync(join(dataDir, 'pepper'), '0'.repeat(64));
    writeFileSync(join(dataDir, 'admin.key'), formatApiKey(newApiKeyText(randomBytes)));
    const options = {
      assembly: 'kubernetes',
      'secrets-dir': dataDir,
      'kubernetes-kubeconfig': kubeconfig,
      'redis-urls': 'redis://127.0.0.1:1',
      listen: '127.0.0.1:0',
      'metrics-listen': 'none',
      'compatible-api-listen': 'none',
    };

    const daemon = command(
      'serve',
      ...Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]),
    );
    let port = 0;
    await eventually(
      () =>
        (port = Number(
          /"port":(\d+).*answering 503 while the start waits/.exec(daemon.said.err)?.[1] ?? 0,
        )) > 0 || daemon.child.exitCode !== null,
      'it listens',
    );
    const [health, readiness, other] = await Promise.all(
      ['healthz', 'readyz', 'v1/sandboxes'].map((path) =>
        fetch(`http://127.0.0.1:${port}/${path}`),
      ),
    );
    daemon.child.kill('SIGTERM');

    expect([health?.status, readiness?.status, other?.status]).to.deep.equal([200, 503, 503]);
    expect(await readiness?.text())
      .to.include('not ready')
      .and.include(`the start waits for the API server at https://127.0.0.1:${awayPort}`);
    expect(await other?.json()).to.include({ errorCode: 'UNAVAILABLE' });
    expect(daemon.said.err).to.include('waiting for the API server');
    expect(await daemon.end).to.equal(0);
  });

  it('reports every fault of its configuration, and exits with 1', async () => {
    const file = join(dataDir, 'my.yaml');
    writeFileSync(file, 'pidsMax: 0\nlisten: here\n');

    const daemon = command('serve', '--config', file);

    expect(await daemon.end).to.equal(1);
    expect(daemon.said.err)
      .to.include('The configuration has 2 errors:')
      .and.include('pidsMax must be')
      .and.include('listen must be');
  });
});
