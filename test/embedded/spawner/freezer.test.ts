import { expect } from 'chai';
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { freeze, isFrozen, thaw } from '../../../src/embedded/spawner/sandbox/freezer.ts';
import { eventually } from '../../support/harness/eventually.ts';
import { skipBecause } from '../../support/harness/skip-because.ts';

const PARENTS = ['/sys/fs/cgroup/freezer', '/sys/fs/cgroup'];
const FORKING = 'while :; do /bin/true; done';

describe('the freezer of cgroups', function () {
  let folder = '';
  let shells: readonly ChildProcess[] = [];

  before(function () {
    for (const parent of PARENTS) {
      folder = `${parent}/freezer-test-${process.pid}`;
      try {
        mkdirSync(folder);
      } catch {
        continue;
      }
      if (['freezer.state', 'cgroup.freeze'].some((file) => existsSync(`${folder}/${file}`)))
        return;
      rmdirSync(folder);
    }
    skipBecause(this, 'this machine has no freezer for us');
  });
  after(async () => {
    if (shells.length === 0) return;
    thaw([folder]);
    for (const shell of shells) shell.kill('SIGKILL');
    await eventually(() => {
      try {
        rmdirSync(folder);
      } catch {
        return false;
      }
      return true;
    }, 'its folder is gone');
  });

  it('stops processes that fork endlessly, each time', async () => {
    shells = Array.from({ length: 8 }, () =>
      spawn('/bin/sh', ['-c', FORKING], { stdio: 'ignore' }),
    );
    for (const { pid } of shells) writeFileSync(`${folder}/cgroup.procs`, String(pid));

    for (let time = 0; time < 300; time += 1) {
      await freeze([folder]);
      expect(isFrozen([folder])).to.equal(true);
      thaw([folder]);
      for (let turn = time % 7; turn > 0; turn -= 1) await new Promise(setImmediate);
    }
  });
});
