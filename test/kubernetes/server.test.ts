import { expect } from 'chai';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { REPOSITORY } from '../support/cluster/container-image.ts';
import { eventually, NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { noRedis } from '../../local-cluster/redis-server.ts';
import { skipBecause } from '../support/harness/skip-because.ts';

describe('script/server --kubernetes', function () {
  let server: ChildProcess;
  let said = '';

  before(async function () {
    if (noRedis !== undefined) skipBecause(this, noRedis);
    if (process.env['TEST_KUBECONFIG'])
      skipBecause(
        this,
        'starts a control plane of its own, and TEST_KUBECONFIG names another cluster',
      );
    server = spawn(process.execPath, ['--import', 'tsx', 'script/server-on-kubernetes.ts', '0'], {
      cwd: REPOSITORY,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    server.stdout?.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
    await eventually(
      () => said.includes('Ctrl-C ends all of it') || server.exitCode !== null,
      'it is ready',
    );
  });
  after(async () => {
    if (!server || server.exitCode !== null) return;
    server.kill('SIGTERM');
    await once(server, 'exit');
  });

  it('explains how to get a first sandbox, and the commands work', async () => {
    const env = Object.fromEntries(
      (/export (.*)/.exec(said)?.[1] ?? '').split(' ').map((pair) => pair.split('=', 2)),
    );
    const { stdout } = await promisify(execFile)(
      'bin/sandpool',
      ['run', '--', 'echo', 'from a Pod'],
      { cwd: REPOSITORY, env: { PATH: process.env['PATH'], ...env }, timeout: NEVER_COMES_MS },
    );

    expect(stdout).to.equal('from a Pod\n');
  });

  it('runs a command in a terminal, as docs/terminal.md shows', async () => {
    const env = {
      PATH: process.env['PATH'],
      ...Object.fromEntries(
        (/export (.*)/.exec(said)?.[1] ?? '').split(' ').map((pair) => pair.split('=', 2)),
      ),
    };
    const run = (program: string, ...args: readonly string[]) =>
      promisify(execFile)(program, args, { cwd: REPOSITORY, env, timeout: NEVER_COMES_MS });
    const sandbox = (await run('bin/sandpool', 'sandboxes', 'create')).stdout.trim();

    const { code, stdout } = await run(
      process.execPath,
      'docs/examples/run-by-terminal.mjs',
      sandbox,
      'sh',
      '-c',
      'echo "it\'s é"; exit 7',
    ).then(
      (end) => ({ code: 0, ...end }),
      (error: { code: number; stdout: string }) => error,
    );

    expect({ code, stdout }).to.deep.equal({ code: 7, stdout: "it's é\n" });
  });

  it('leaves nothing behind when it stops', async () => {
    const keyFile = /SANDPOOL_API_KEY_FILE=(\S+)/.exec(said)?.[1] ?? '';
    const pids = (/pids ([\d, ]+)\)/.exec(said)?.[1] ?? '').split(', ').map(Number);
    expect(existsSync(keyFile)).to.equal(true);
    expect(pids).to.have.length(3);

    server.kill('SIGINT');
    const [code]: unknown[] = await once(server, 'exit');

    expect(code).to.equal(0);
    expect(existsSync(dirname(keyFile))).to.equal(false);
    expect(pids.filter((pid) => existsSync(`/proc/${pid}`))).to.deep.equal([]);
  });
});
