import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { parseOwnCgroups } from '../../../src/embedded/spawner/sandbox/cgroups.ts';
import { HostUids } from '../../../src/embedded/spawner/sandbox/host-uids.ts';
import { Notes, type InstanceNote } from '../../../src/embedded/spawner/sandbox/notes.ts';
import { joinOrder, startOrder } from '../../../src/embedded/spawner/orders.ts';
import {
  isAlive,
  readProcessStat,
} from '../../../src/embedded/spawner/sandbox/process-identity.ts';
import { nameOf, pathsOf } from '../../../src/embedded/spawner/protocol.ts';
import type { HostMount } from '../../../src/embedded/spawner/protocol.ts';
import { bwrapOptions } from '../../../src/embedded/spawner/sandbox/rootfs.ts';
import { publicMessage } from '../../../src/embedded/spawner/public-message.ts';
import { aContainer, aDefinition } from '../../support/builders/instance-orders.ts';

describe('host uids', () => {
  it('are assigned once until released, and reused as late as possible', () => {
    const uids = new HostUids({ first: 100, count: 3 }, 7);
    const [a, b, c] = [uids.take(), uids.take(), uids.take()];
    expect([a, b, c]).to.have.members([100, 101, 102]);
    expect(uids.take()).to.equal(undefined);
    uids.giveBack(b ?? 0);
    expect(uids.take()).to.equal(b);
  });

  it('skip those of adopted sandboxes', () => {
    const uids = new HostUids({ first: 100, count: 2 }, 0);
    uids.mark(100);
    expect([uids.take(), uids.take()]).to.deep.equal([101, undefined]);
  });
});

describe('notes', () => {
  const note: InstanceNote = {
    id: 'i',
    tenant: 'alpha/alpha/alice',
    bootId: 'b',
    outer: { pid: 1, startTime: '2' },
    uid: 3,
    cgroups: ['/c'],
    env: { A: '\n' },
    workingDir: '/',
  };
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-notes-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('are found again, before and after the instance runs', async () => {
    const notes = new Notes(folder);
    notes.write(note);
    expect(new Notes(folder).all()).to.deep.equal([
      { id: 'i', note, running: undefined, wasReady: false },
    ]);
    notes.writeRunning('i', { init: { pid: 9, startTime: '8' }, startedAt: 7 });
    expect(new Notes(folder).all()).to.deep.equal([
      {
        id: 'i',
        note,
        running: { init: { pid: 9, startTime: '8' }, startedAt: 7 },
        wasReady: false,
      },
    ]);
    notes.writeReady('i');
    expect(new Notes(folder).all()[0]?.wasReady).to.equal(true);
    await notes.remove('i');
    await notes.remove('i');
    expect(notes.all()).to.deep.equal([]);
  });

  it('count as torn if they are foreign, and can be removed in any case', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sandpool-notes-'));
    const notes = new Notes(folder);
    mkdirSync(join(folder, 'run', 'a-folder', 'below'), { recursive: true });
    writeFileSync(join(folder, 'run', 'other'), '{"id":"other"}\n{}\n');
    writeFileSync(join(folder, 'run', 'text'), 'null\n');
    expect(notes.all().map(({ id, note, running }) => [id, note, running])).to.have.deep.members([
      ['a-folder', undefined, undefined],
      ['other', undefined, undefined],
      ['text', undefined, undefined],
    ]);
    for (const { id } of notes.all()) await notes.remove(id);
    expect(notes.all()).to.deep.equal([]);
    rmSync(folder, { recursive: true });
  });

  it('count as torn wherever they are truncated', () => {
    const notes = new Notes(folder);
    notes.write(note);
    const whole = `${JSON.stringify(note)}\n`;
    for (let length = 0; length < whole.length - 1; length += 1) {
      writeFileSync(join(folder, 'run', 'i'), whole.slice(0, length));
      expect(notes.all(), String(length)).to.deep.equal([
        { id: 'i', note: undefined, running: undefined, wasReady: false },
      ]);
    }
  });
});

describe('orders', () => {
  const tokens = (order: Buffer): readonly string[] => String(order).split('\0');

  it('end with go, and name what the launcher needs', () => {
    expect(
      tokens(
        startOrder({
          bwrap: '/b',
          uid: 7,
          cgroups: ['/x'],
          rlimits: [['nofile', '1', '2']],
          options: ['--o'],
          argv: ['cmd', ''],
        }),
      ),
    ).to.deep.equal([
      'uid',
      '7',
      'gid',
      '7',
      'cgroup',
      '/x',
      'rlimit',
      'nofile',
      '1',
      '2',
      'bwrap',
      '/b',
      'arg',
      '--o',
      'arg',
      '--',
      'arg',
      '/.sandpool/launcher',
      'arg',
      'init',
      'arg',
      'cmd',
      'arg',
      '',
      'go',
      '',
    ]);
    expect(
      tokens(
        joinOrder({
          init: { pid: 5, startTime: '6' },
          cgroups: [],
          cwd: '/w',
          env: { A: 'b=c' },
          argv: ['go'],
        }),
      ),
    ).to.deep.equal([
      'pid',
      '5',
      'starttime',
      '6',
      'insideuid',
      '1000',
      'insidegid',
      '1000',
      'cwd',
      '/w',
      'env',
      'A=b=c',
      'arg',
      'go',
      'go',
      '',
    ]);
  });

  it('cannot be extended by a NUL', () => {
    const join = (argv: readonly string[]): Buffer =>
      joinOrder({ init: { pid: 5, startTime: '6' }, cgroups: [], cwd: '/', env: {}, argv });
    expect(() => join(['x\0cgroup\0/elsewhere'])).to.throw('NUL');
  });
});

describe('the options for bubblewrap', () => {
  const options = (
    definition = aDefinition(),
    {
      system = [],
      mounts = [],
    }: { system?: readonly string[]; mounts?: readonly HostMount[] } = {},
  ): string =>
    bwrapOptions({
      definition,
      container: definition.containers[0] ?? aContainer(),
      rootfs: { taken: [], user: { uid: 1_000, gid: 1_000 }, launcher: '/l', system, proc: [] },
      mounts,
    }).join(' ');

  it('link /home/user to the home, unless the folder exists', () => {
    const link = '--symlink sandbox /home/user';
    const volume = { source: '/', target: '/home/user/data', readOnly: true };
    expect(options()).to.include(link);
    expect(options(aDefinition(), { system: ['--ro-bind', '/i', '/home/user'] })) //
      .to.not.include(link);
    expect(options(aDefinition(), { mounts: [volume] })).to.not.include(link);
  });

  it("limit memory for files to less than the sandbox's", () => {
    const sizes = [...options().matchAll(/--size (\d+)/g)].map((match) => Number(match[1]));
    expect(sizes.reduce((sum, size) => sum + size, 0)).to.be.lessThan(aContainer().memoryBytes);
    expect(options().match(/--tmpfs/g)).to.have.lengthOf(sizes.length);
  });

  it('share the network only if the template asks for it', () => {
    expect(options()).to.not.include('--share-net');
    expect(options(aDefinition({}, { network: 'host' }))).to.include('--share-net');
  });

  it('bind no host folder for writing', () => {
    expect(options()).to.not.match(/ --(dev-)?bind/);
  });
});

describe('processes', () => {
  it('are distinguished by their start time', () => {
    const own = readProcessStat(process.pid);
    expect(own?.parent).to.equal(process.ppid);
    expect(isAlive({ pid: process.pid, startTime: own?.startTime ?? '' })).to.equal(true);
    expect(isAlive({ pid: process.pid, startTime: '1' })).to.equal(false);
    expect(readProcessStat(2 ** 22 + 1)).to.equal(undefined);
  });
});

describe('paths', () => {
  it('put the socket into the data folder, unless its path would be too long', () => {
    expect(pathsOf('/var/lib/sandpool').socket).to.equal('/var/lib/sandpool/spawner.sock');
    const long = pathsOf(`/${'x'.repeat(100)}`);
    expect(Buffer.byteLength(long.socket)).to.be.at.most(107);
    expect(long.socketFolder).to.include(nameOf(`/${'x'.repeat(100)}`));
  });

  it('differ between data folders', () => {
    expect(nameOf('/a')).to.not.equal(nameOf('/b'));
  });
});

describe("the daemon's own cgroups", () => {
  it('are read by controller, in combined and unified hierarchies', () => {
    const own = parseOwnCgroups('9:name=systemd:/\n4:memory:/a/b\n2:cpu,cpuacct:/c:d\n0::/u\n');
    expect([own.get('memory'), own.get('cpu'), own.get('cpuacct'), own.get('')]).to.deep.equal([
      '/a/b',
      '/c:d',
      '/c:d',
      '/u',
    ]);
  });
});

describe('errors for tenants', () => {
  it('contain no host path', () => {
    const failed = (code: string): Error =>
      Object.assign(new Error(`spawn /var/lib/sandpool-0123/launcher ${code}`), { code });
    expect(publicMessage(failed('EAGAIN'))).to.equal('the machine cannot run another process');
    expect(publicMessage(failed('ENOENT'))).to.equal('it could not be started (ENOENT)');
    expect(publicMessage(new Error('cannot open /dev/ptmx'))).to.equal('it could not be started');
    expect(publicMessage(new Error('too many descriptors are open'))).to.equal(
      'too many descriptors are open',
    );
  });
});
