import { expect } from 'chai';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LauncherPool } from '../../../src/embedded/spawner/launcher-pool.ts';
import { childrenOf } from '../../../src/embedded/spawner/sandbox/process-identity.ts';
import { eventually } from '../../support/harness/eventually.ts';

describe('launchers that join a sandbox', () => {
  let folder: string;
  let path: string;
  let launchers: LauncherPool;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-joiners-'));
    path = aProgram('one');
    for (const { pid } of childrenOf(process.pid)) used.add(pid);
    launchers = new LauncherPool(() => path);
  });
  afterEach(() => {
    launchers.stop();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });

  /** Waits for the end of its order, as the launcher does. */
  const aProgram = (name: string): string => {
    const file = join(folder, name);
    writeFileSync(file, '#!/bin/sh\nexec cat <&3\n');
    chmodSync(file, 0o755);
    return file;
  };
  const used = new Set<number | undefined>();
  const take = () => {
    const child = launchers.take({ withInput: false });
    used.add(child.pid);
    return child;
  };
  const waiting = async (): Promise<number> => {
    let found: number | undefined;
    await eventually(() => {
      found = childrenOf(process.pid).find(({ pid }) => !used.has(pid))?.pid;
      return found !== undefined;
    }, 'one waits');
    return found ?? expect.fail();
  };

  it('wait for the next command, one at a time', async () => {
    const first = take();
    const next = await waiting();
    const second = take();

    expect(second.pid).to.equal(next);
    for (const child of [first, second]) child.kill('SIGKILL');
  });

  it('are replaced if the waiting one was killed', async () => {
    take().kill('SIGKILL');
    const lost = await waiting();
    process.kill(lost, 'SIGKILL');
    await eventually(() => !childrenOf(process.pid).some(({ pid }) => pid === lost), 'it is gone');

    const child = take();
    expect(child.pid).to.not.equal(lost);
    expect(child.kill('SIGKILL')).to.equal(true);
    expect((await once(child, 'exit'))[1]).to.equal('SIGKILL');
  });

  it('use the current launcher binary', async () => {
    take().kill('SIGKILL');
    const old = await waiting();
    path = aProgram('two');

    const child = take();
    expect(child.pid).to.not.equal(old);
    expect(child.spawnfile).to.equal(path);
    child.kill('SIGKILL');
  });

  it('all end when they are stopped', async () => {
    take().kill('SIGKILL');
    const left = await waiting();
    launchers.stop();

    await eventually(() => !childrenOf(process.pid).some(({ pid }) => pid === left), 'it is gone');
  });
});
