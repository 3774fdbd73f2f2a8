import { expect } from 'chai';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findLeftovers } from '../../local-cluster/leftovers.ts';
import { belongingTo } from '../../local-cluster/watched-folder.ts';
import { eventually } from '../support/harness/eventually.ts';

const MODULE = JSON.stringify(
  new URL('../../local-cluster/watched-folder.ts', import.meta.url).href,
);
/**
 * Starts a process that belongs to a folder, one of another session which that starts, and one that
 * is merely told of it.
 */
const STARTER = `
  const { spawn } = await import('node:child_process');
  const { watchedFolder, markOf } = await import(${MODULE});
  const folder = watchedFolder('part');
  const env = { PATH: process.env.PATH };
  spawn('setsid', ['sh', '-c', 'setsid sleep 600 & exec sleep 600'], { env: { ...env, ...markOf(folder) }, detached: true, stdio: 'ignore' }).unref();
  const stranger = spawn('sleep', ['600'], { env: { ...env, KEY_FILE: folder + '/key' }, detached: true, stdio: 'ignore' });
  stranger.unref();
  console.log(folder + ' ' + stranger.pid);
`;

describe('a watched folder', function () {
  let starter: ChildProcess;
  let strangerPid = 0;

  /** A process that has a folder, which it answers, and then does `next`. */
  const start = async (next: string): Promise<string> => {
    starter = spawn(
      process.execPath,
      ['--import', 'tsx', '--input-type=module', '-e', STARTER + next],
      { cwd: fileURLToPath(new URL('../..', import.meta.url)), stdio: ['pipe', 'pipe', 'inherit'] },
    );
    if (!starter.stdout) throw new Error('it has an output');
    const [said]: unknown[] = await once(starter.stdout, 'data');
    const [folder = '', pid = ''] = String(said).trim().split(' ');
    strangerPid = Number(pid);
    await eventually(
      () => findLeftovers(belongingTo(folder)).length === 2,
      'both of its processes run',
    );
    return folder;
  };
  const isGone = (folder: string): boolean =>
    findLeftovers(belongingTo(folder)).length === 0 && !existsSync(dirname(folder));

  afterEach(() => {
    starter.kill('SIGKILL');
    try {
      process.kill(strangerPid, 'SIGKILL');
    } catch {
      // It was not spared.
    }
  });

  for (const signal of ['SIGINT', 'SIGTERM', 'SIGKILL'] as const) {
    it(`is gone with all that belongs to it after ${signal}, and nothing else is`, async () => {
      const folder = await start('setInterval(() => undefined, 60_000);');
      starter.kill(signal);
      await eventually(() => isGone(folder), 'nothing is left');
      expect(existsSync(`/proc/${strangerPid}`)).to.equal(true);
    });
  }

  it('does not keep its process from ending, and is gone then', async () => {
    const folder = await start(
      'await new Promise((resolve) => { process.stdin.once("data", resolve); }); process.stdin.destroy();',
    );
    starter.stdin?.write('end\n');
    const [code]: unknown[] = await once(starter, 'exit');
    expect(code).to.equal(0);
    await eventually(() => isGone(folder), 'nothing is left');
  });
});
