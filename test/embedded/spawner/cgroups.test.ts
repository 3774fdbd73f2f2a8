import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { findCgroups, removeCgroups } from '../../../src/embedded/spawner/cgroups.ts';
import { skipBecause } from '../../support/skip-because.ts';

describe('the cgroups of a data folder', () => {
  it('leave process numbers to the machine, however many sandboxes there are', function () {
    const cgroups = findCgroups(`sandpool-test-${process.pid}`);
    if (!cgroups.level.startsWith('cgroup')) skipBecause(this, 'there are no cgroups here');
    const folders = cgroups.create('one', 'team/alice', { memoryBytes: 64 << 20, cpuCores: 1, processes: 100 });
    const limits = folders.flatMap((folder) => limitOf(dirname(dirname(folder))));
    removeCgroups(folders);
    cgroups.remove();
    const numbers = Number(readFileSync('/proc/sys/kernel/pid_max', 'utf8'));
    expect(limits).to.deep.equal([Math.floor(numbers * 3 / 4)]);
  });

  it('stand below their tenants\', which weigh the same, are found there, and go with the last of them', function () {
    const cgroups = findCgroups(`sandpool-test-${process.pid}`);
    if (!cgroups.level.startsWith('cgroup')) skipBecause(this, 'there are no cgroups here');
    const limits = { memoryBytes: 64 << 20, cpuCores: 1, processes: 100 };
    const [one, two, other] = [cgroups.create('one', 'team/alice', limits), cgroups.create('two', 'team/alice', limits), cgroups.create('other', 'team/bob', limits)];
    const tenants = [one, two, other].map((folders) => folders.map(dirname));
    expect(tenants[0]).to.deep.equal(tenants[1]);
    expect(tenants[0]).not.to.deep.equal(tenants[2]);
    expect(String(one)).not.to.include('alice');
    expect(Object.fromEntries(cgroups.all())).to.deep.equal({ one, two, other });

    removeCgroups(one);
    expect(existsSync(dirname(two[0] ?? ''))).to.equal(true);
    expect(Object.fromEntries(cgroups.all())).to.deep.equal({ two, other });
    removeCgroups([...two, ...other]);
    expect(tenants.flat().filter((folder) => existsSync(folder))).to.deep.equal([]);
    cgroups.remove();
  });

  it('are found also where an older version made them, beside the tenants', function () {
    const cgroups = findCgroups(`sandpool-test-${process.pid}`);
    if (!cgroups.level.startsWith('cgroup')) skipBecause(this, 'there are no cgroups here');
    const [made] = cgroups.create('new', 'team/alice', { memoryBytes: 64 << 20, cpuCores: 1, processes: 100 });
    const old = join(dirname(dirname(made ?? '')), 'old');
    mkdirSync(old);
    expect(cgroups.all().get('old')).to.deep.equal([old]);
    removeCgroups([...cgroups.all().values()].flat());
    cgroups.remove();
  });
});

const limitOf = (folder: string): readonly number[] => {
  try {
    return [Number(readFileSync(join(folder, 'pids.max'), 'utf8'))];
  } catch {
    return []; // another controller's
  }
};
