import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { findCgroups, removeCgroups } from '../../../src/embedded/spawner/cgroups.ts';
import { skipBecause } from '../../support/skip-because.ts';

describe('the cgroups of a data folder', () => {
  it('leave process numbers to the machine, however many sandboxes there are', function () {
    const cgroups = findCgroups(`sandpool-test-${process.pid}`);
    if (!cgroups.level.startsWith('cgroup')) skipBecause(this, 'there are no cgroups here');
    const folders = cgroups.create('one', { memoryBytes: 64 << 20, cpuCores: 1, processes: 100 });
    const limits = folders.flatMap((folder) => limitOf(dirname(folder)));
    removeCgroups(folders);
    cgroups.remove();
    const numbers = Number(readFileSync('/proc/sys/kernel/pid_max', 'utf8'));
    expect(limits).to.deep.equal([Math.floor(numbers * 3 / 4)]);
  });
});

const limitOf = (folder: string): readonly number[] => {
  try {
    return [Number(readFileSync(join(folder, 'pids.max'), 'utf8'))];
  } catch {
    return []; // another controller's
  }
};
