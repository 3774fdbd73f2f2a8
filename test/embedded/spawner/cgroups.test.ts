import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { endStart, removeCgroups } from '../../../src/embedded/spawner/sandbox/cgroup-folders.ts';
import { findCgroups } from '../../../src/embedded/spawner/sandbox/cgroups.ts';
import { skipBecause } from '../../support/harness/skip-because.ts';

describe('the cgroups of a data folder', () => {
  it('do not limit process numbers, however many sandboxes there are', function () {
    const cgroups = findCgroups(`sandpool-test-${process.pid}`);
    if (!cgroups.level.startsWith('cgroup')) skipBecause(this, 'there are no cgroups here');
    const folders = cgroups.create('one', 'team/alice', {
      memoryBytes: 64 << 20,
      cpuCores: 1,
      processes: 100,
    });
    const limits = folders.flatMap((folder) => limitOf(dirname(dirname(folder))));
    removeCgroups(folders);
    cgroups.remove();
    const numbers = Number(readFileSync('/proc/sys/kernel/pid_max', 'utf8'));
    expect(limits).to.deep.equal([Math.floor((numbers * 3) / 4)]);
  });

  it('are below those of their tenants, which have equal weights, and end with the last sandbox', function () {
    const cgroups = findCgroups(`sandpool-test-${process.pid}`);
    if (!cgroups.level.startsWith('cgroup')) skipBecause(this, 'there are no cgroups here');
    const limits = { memoryBytes: 64 << 20, cpuCores: 1, processes: 100 };
    const [one, two, other] = [
      cgroups.create('one', 'team/alice', limits),
      cgroups.create('two', 'team/alice', limits),
      cgroups.create('other', 'team/bob', limits),
    ];
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

  it("limit TCP memory to a part of the machine's, half of that per tenant, and an eighth per sandbox", function () {
    const cgroups = findCgroups(`sandpool-test-${process.pid}`);
    if (cgroups.level !== 'cgroup-v1')
      skipBecause(this, "with cgroup v2 a sandbox's memory counts what its sockets hold");
    const folders = [
      ...cgroups.create('one', 'team/alice', {
        memoryBytes: 256 << 20,
        cpuCores: 1,
        processes: 100,
      }),
      ...cgroups.create('small', 'team/alice', {
        memoryBytes: 16 << 20,
        cpuCores: 1,
        processes: 100,
      }),
    ];
    const [one, small] = folders.filter((folder) =>
      existsSync(join(folder, 'memory.kmem.tcp.limit_in_bytes')),
    );
    const read = (folder: string): number =>
      Number(readFileSync(join(folder, 'memory.kmem.tcp.limit_in_bytes'), 'utf8'));
    const [own, least, tenant, all] = [
      read(one ?? ''),
      read(small ?? ''),
      read(dirname(one ?? '')),
      read(dirname(dirname(one ?? ''))),
    ];
    removeCgroups(folders);
    cgroups.remove();

    const [unregulated] = readFileSync('/proc/sys/net/ipv4/tcp_mem', 'utf8')
      .split(/\s/)
      .map(Number);
    expect([own, least]).to.deep.equal([32 << 20, 8 << 20]);
    expect(all).to.equal(Math.floor(((unregulated ?? 0) * 3) / 4) * 4_096);
    expect(tenant).to.be.within(all / 2 - 4_096, all / 2);
  });

  it('together have less weight than one process of the daemon', function () {
    const cgroups = findCgroups(`sandpool-test-${process.pid}`);
    if (!cgroups.level.startsWith('cgroup')) skipBecause(this, 'there are no cgroups here');
    const folders = cgroups.create('one', 'team/alice', {
      memoryBytes: 64 << 20,
      cpuCores: 1,
      processes: 100,
    });
    const weights = folders
      .flatMap((folder) =>
        ['cpu.shares', 'cpu.weight'].map((name) => join(dirname(dirname(folder)), name)),
      )
      .filter((path) => existsSync(path))
      .map((path) => readFileSync(path, 'utf8').trim());
    removeCgroups(folders);
    cgroups.remove();
    if (weights.length === 0) skipBecause(this, 'no cgroup shares out the processor here');
    expect(weights).to.deep.equal([cgroups.level === 'cgroup-v1' ? '256' : '25']);
  });

  it('have a hundredfold weight within their tenant during their start', function () {
    const cgroups = findCgroups(`sandpool-test-${process.pid}`);
    if (!cgroups.level.startsWith('cgroup')) skipBecause(this, 'there are no cgroups here');
    const folders = cgroups.create('one', 'team/alice', {
      memoryBytes: 64 << 20,
      cpuCores: 1,
      processes: 100,
    });
    const weights = (): readonly number[] =>
      folders
        .flatMap((folder) => [join(folder, 'cpu.shares'), join(folder, 'cpu.weight')])
        .filter((path) => existsSync(path))
        .map((path) => Number(readFileSync(path, 'utf8')));
    const starting = weights();
    endStart(folders, 1);
    const running = weights();
    removeCgroups(folders);
    cgroups.remove();
    if (running.length === 0) skipBecause(this, 'no cgroup shares out the processor here');
    const usual = cgroups.level === 'cgroup-v1' ? 1_024 : 100;
    expect({ starting, running }).to.deep.equal({ starting: [100 * usual], running: [usual] });
  });
});

const limitOf = (folder: string): readonly number[] => {
  try {
    return [Number(readFileSync(join(folder, 'pids.max'), 'utf8'))];
  } catch {
    return []; // another controller's
  }
};
