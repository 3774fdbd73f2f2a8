import { expect } from 'chai';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readPidFile } from '../../src/process/pid-file.ts';
import { formatApiKey, newApiKeyText } from '../../src/model/api-key-text.ts';
import { freePorts } from '../../local-cluster/control-plane/free-ports.ts';
import { rememberChild } from '../../local-cluster/started-processes.ts';
import { eventually } from '../support/harness/eventually.ts';
import { HttpClient } from '../support/harness/http-client.ts';
import { stocked } from '../support/harness/on-a-daemon.ts';
import { spawnerPid } from '../support/chaos/kill-rounds.ts';

const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
/** As a URL: the daemon hands it on to its spawner, which starts in another folder. */
const TSX = import.meta.resolve('tsx');

/** Whether this process, and so what it starts, has CAP_SYS_NICE. */
const mayHavePriority = (): boolean => {
  const [, capabilities = '0'] =
    /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return ((BigInt(`0x${capabilities}`) >> 23n) & 1n) === 1n;
};

describe('sandpool serve', function () {
  let dataDir: string;
  let running: ChildProcess[];

  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'serve-'));
    chmodSync(dataDir, 0o711);
    running = [];
  });

  afterEach(async () => {
    for (const child of running)
      if (child.exitCode === null && child.signalCode === null)
        await ended(child, () => child.kill('SIGKILL'));
    await command('stop', '--all').end;
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
  });

  const ended = async (child: ChildProcess, how: () => void): Promise<void> => {
    const end = once(child, 'close');
    how();
    await end;
  };

  /** The ready text comes before the instances. */
  const hasItsPool = async (): Promise<void> => {
    const { port } = new URL(readPidFile(dataDir)?.address ?? '');
    const key = readFileSync(join(dataDir, 'keys/tenant.key'), 'utf8').trim();
    const client = new HttpClient(Number(port), key);
    await stocked(client, 4).finally(() => client.close());
  };

  const command = (...args: string[]) => {
    const child = spawn(process.execPath, ['--import', TSX, MAIN, ...args, '--data-dir', dataDir], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    running.push(child);
    const said = { out: '', err: '' };
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said.out += text;
      child.emit('said');
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said.err += text;
    });
    rememberChild(`sandpool ${args.join(' ')}`, child, () => said.out + said.err);
    const end = once(child, 'close').then(([code]: unknown[]) => code);
    /** Resolves once it has said so; fails where it ends before. */
    const says = async (text: string): Promise<void> => {
      while (!said.out.includes(text)) {
        const next = await Promise.race([
          once(child, 'said').then(() => 'said'),
          end.then(() => 'end'),
        ]);
        if (next === 'end' && !said.out.includes(text))
          throw new Error(`ended without saying ${text}: ${said.out}${said.err}`);
      }
    };
    return { child, said, end, says };
  };

  it('says where it listens and where the keys lie, and refuses a second start on its data folder', async () => {
    const first = command('serve', '--listen', '127.0.0.1:0');
    await first.says('shell\n');
    const address = /ready at (http:\/\/127\.0\.0\.1:\d+)/.exec(first.said.out)?.[1];

    const second = command('serve', '--listen', '127.0.0.1:0');

    expect(await second.end).to.equal(1);
    expect(second.said.err).to.include(
      `A daemon already runs on ${dataDir}: ${address} (pid ${first.child.pid})`,
    );
    expect(readPidFile(dataDir)?.address).to.equal(address);
    expect(readFileSync(join(dataDir, 'keys/tenant.key'), 'utf8')).to.match(/^spk_/);
    expect(first.said.out)
      .to.include(`cat ${dataDir}/keys/tenant.key`)
      .and.include('run -- uname -a');
    expect((await fetch(`${address}/healthz`)).status).to.equal(200);
  });

  it('comes before others of the machine where that is allowed, and what it starts does not', async () => {
    const daemon = command('serve', '--listen', '127.0.0.1:0');
    await daemon.says('shell\n');
    const spawner = spawnerPid(dataDir);

    expect(getPriority(daemon.child.pid)).to.equal(mayHavePriority() ? -5 : 0);
    expect(spawner && getPriority(spawner)).to.equal(0);
  });

  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    it(`stops at ${signal}, leaves its sandboxes, and says how many`, async () => {
      const daemon = command('serve', '--listen', '127.0.0.1:0');
      await daemon.says('shell\n');
      await hasItsPool();

      daemon.child.kill(signal);

      expect(await daemon.end).to.equal(0);
      expect(daemon.said.out).to.match(/4 sandboxes are left .* stop --all/);
      expect(readPidFile(dataDir)).to.equal(undefined);
    });
  }

  it('waits for an API server that is not there, says so in log and readiness, and ends with 0 when told to', async () => {
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
        (port = Number(/"port":(\d+).*says that it waits/.exec(daemon.said.err)?.[1] ?? 0)) > 0 ||
        daemon.child.exitCode !== null,
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
    expect(daemon.said.err).to.include('waits for the API server');
    expect(await daemon.end).to.equal(0);
  });

  it('names every fault of its configuration and ends with 1', async () => {
    const file = join(dataDir, 'my.yaml');
    writeFileSync(file, 'pidsMax: 0\nlisten: here\n');

    const daemon = command('serve', '--config', file);

    expect(await daemon.end).to.equal(1);
    expect(daemon.said.err)
      .to.include('The configuration has 2 faults:')
      .and.include('pidsMax must be')
      .and.include('listen must be');
  });
});
