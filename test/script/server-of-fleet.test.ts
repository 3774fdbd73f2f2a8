import { expect } from 'chai';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { readPidFile } from '../../src/daemon/process/pid-file.ts';
import { REPOSITORY } from '../support/cluster/container-image.ts';
import { eventually, NEVER_COMES_MS } from '../support/harness/eventually.ts';

describe('script/server --fleet', function () {
  let server: ChildProcess;
  let said = '';

  before(async () => {
    server = spawn(process.execPath, ['--import', 'tsx', 'script/server-of-fleet.ts', '2', '0'], {
      cwd: REPOSITORY,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    server.stdout?.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
    await eventually(
      () => said.includes('Ctrl-C stops it') || server.exitCode !== null,
      'it is ready',
    );
  });
  after(async () => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    server.kill('SIGTERM');
    await once(server, 'exit');
  });

  it('shows its clusters, hands out a sandbox as printed, and leaves nothing behind', async () => {
    const dataDir = /export SANDPOOL_DATA_DIR=(\S+)/.exec(said)?.[1] ?? '';
    const lines = [...said.matchAll(/^ {2}(bin\/sandpool .*)$/gm)].map(([, line = '']) => line);
    expect(lines, said).to.have.length(2);
    const [clusters, first] = await Promise.all(
      lines.map((line) =>
        promisify(execFile)('bash', ['-c', line], {
          cwd: REPOSITORY,
          env: { PATH: process.env['PATH'], SANDPOOL_DATA_DIR: dataDir },
          timeout: NEVER_COMES_MS,
        }),
      ),
    );
    for (const clusterId of ['hub', 'w1', 'w2'])
      expect(clusters?.stdout).to.match(new RegExp(`^${clusterId} +Connected `, 'm'));
    expect(first?.stdout).to.equal('Linux\n');

    const folder = dirname(dataDir);
    const pids = ['hub', 'w1', 'w2'].map((name) => readPidFile(join(folder, name))?.pid ?? 0);
    for (const pid of pids) expect(existsSync(`/proc/${pid}/stat`)).to.equal(true);
    server.kill('SIGINT');
    const [code]: unknown[] = await once(server, 'exit');
    expect([code, existsSync(folder)]).to.deep.equal([0, false]);
    for (const pid of pids) expect(existsSync(`/proc/${pid}/stat`)).to.equal(false);
  });
});
