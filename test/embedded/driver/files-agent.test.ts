import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { expect } from 'chai';
import { InstanceGone, OutcomeUnknown } from '../../../src/contracts/sandbox-driver.ts';
import { Place } from '../../contracts/files/place.ts';
import { buildLauncher } from '../../support/harness/a-spawned-driver.ts';
import { aWatchedDriver, type WatchedDriver } from '../../support/harness/a-watched-driver.ts';
import { eventually } from '../../support/harness/eventually.ts';
import { rejection } from '../../support/harness/rejection.ts';
import { skipBecause } from '../../support/harness/skip-because.ts';
import { NO_ATTRIBUTES, tmpfsHasAttributes } from '../../support/harness/tmpfs-attributes.ts';

describe("the agent for a sandbox's files", function () {
  let watched: WatchedDriver;
  let id: string;
  let place: Place;
  before(async () => {
    buildLauncher();
    watched = await aWatchedDriver();
  });
  after(() => watched.close());
  beforeEach(async () => {
    ({ id } = await watched.launched());
    place = new Place({
      files: watched.driver.files,
      id,
      folder: '/home/sandbox',
      unknownId: '',
      keepsMetadata: true,
      sh: (script) => watched.sh(id, script),
    });
  });

  /** Host pids of the processes of the sandbox that are agents. */
  const agents = (): readonly number[] => {
    const namespace = `pid:[${namespaceOf(watched.runningOf(id).init.pid)}]`;
    const found = spawnSync(
      'find',
      [
        '/proc',
        '-maxdepth',
        '3',
        '-path',
        '/proc/[0-9]*/ns/pid',
        '-lname',
        namespace.replaceAll(/[[\]]/g, String.raw`\$&`),
      ],
      { encoding: 'utf8' },
    );
    return found.stdout
      .split('\n')
      .flatMap((path) => /^\/proc\/(\d+)\//.exec(path)?.[1] ?? [])
      .map(Number)
      .filter(
        (pid) =>
          commandOf(pid).startsWith('launcher\0files') ||
          commandOf(pid).includes('/launcher\0files'),
      );
  };
  const agent = async (): Promise<number> => {
    await place.list('.');
    const [pid, ...others] = agents();
    expect(others).to.deep.equal([]);
    if (pid === undefined) throw new Error('there is no agent');
    return pid;
  };

  /** Content that goes on until it is stopped; `flows` once some of it was taken. */
  const anEndless = (): { readonly content: Readable; readonly flows: Promise<void> } => {
    let taken: () => void = () => {};
    const flows = new Promise<void>((resolve) => {
      taken = resolve;
    });
    let pieces = 0;
    const content = new Readable({
      read() {
        pieces += 1;
        if (pieces > 40) return taken();
        this.push(Buffer.alloc(64 << 10, 'n'));
      },
    });
    return { content, flows };
  };

  it('exists once per sandbox, even for simultaneous calls', async () => {
    await Promise.all(Array.from({ length: 20 }, () => place.list('.')));

    expect(agents()).to.have.length(1);
  });

  it('has no more rights than the processes of the sandbox', async () => {
    const pid = await agent();
    const { pid: main } = watched.runningOf(id).init;
    const shown = (of: number): readonly string[] =>
      readFileSync(`/proc/${of}/status`, 'utf8')
        .split('\n')
        .filter((line) => /^(Uid|Gid|Groups|Cap\w+|NoNewPrivs|Seccomp):/.test(line));
    // An idle sandbox has only its first process.
    const [first = ''] = spawnSync('pgrep', ['-P', String(main)], {
      encoding: 'utf8',
    }).stdout.split('\n');
    const child = first === '' ? main : Number(first);

    expect(shown(pid)).to.deep.equal(shown(child));
    for (const kind of ['mnt', 'net', 'ipc', 'uts', 'user', 'cgroup'])
      expect(linkOf(pid, kind), kind).to.equal(linkOf(child, kind));
  });

  it('cannot be inspected by the sandbox', async () => {
    await agent();
    const script = `for p in /proc/[0-9]*; do [ $p != /proc/1 ] && grep -q '^launcher$' $p/comm && { ls $p/fd || echo closed; cat $p/environ || echo closed; cat $p/maps || echo closed; }; done 2>/dev/null`;

    expect(await place.under.sh(script)).to.equal('closed\nclosed\nclosed\n');
  });

  it('leaves no partial file when it is killed, and the writer gets an error', async () => {
    await place.put('file', 'old');
    const pid = await agent();
    const { content, flows } = anEndless();
    const written = rejection(place.put('file', content));
    await flows;

    process.kill(pid, 'SIGKILL');

    expect(await written).to.be.instanceOf(OutcomeUnknown);
    expect(content.destroyed).to.equal(true);
    expect(await place.under.sh('cd; cat file; ls -A')).to.equal('oldfile\n');
    expect(String(await place.get('file'))).to.equal('old');
  });

  it('leaves no partial file when the daemon dies, and serves the next one', async () => {
    await place.put('file', 'old');
    const pid = await agent();
    const { content, flows } = anEndless();
    const leaving = new AbortController();
    const written = rejection(place.put('file', content, {}, leaving.signal));
    await flows;

    // What the kernel does with the connections of a daemon that is killed.
    leaving.abort(new Error('killed'));

    await written;
    await eventually(
      async () => (await place.under.sh('cd; ls -A')) === 'file\n',
      'nothing is left',
    );
    expect(String(await place.get('file'))).to.equal('old');
    expect(await agent()).to.equal(pid);
  });

  it('reports to readers that it was killed', async () => {
    await place.put('file', Buffer.alloc(8 << 20));
    const pid = await agent();
    const { content } = await place.files.open(place.at('file'), {}, new AbortController().signal);

    process.kill(pid, 'SIGKILL');

    const failed = new Promise<Error>((resolve) => content.once('error', resolve));
    content.resume();
    expect(await failed).to.be.instanceOf(OutcomeUnknown);
  });

  it('removes a folder of sixteen thousand folders and files', async () => {
    const made = await place.under.sh(
      'cd; mkdir wide; cd wide; seq 1 8000 | xargs -n 1000 mkdir; seq 8001 16000 | xargs -n 1000 touch; ls | wc -l',
    );

    await place.files.remove(place.at('wide'), { recursive: true }, new AbortController().signal);

    expect(made).to.equal('16000\n');
    expect(await place.under.sh('cd; ls -A')).to.equal('');
  });

  it('watches folders hundreds of levels deep', async function () {
    const made = await place.under.sh(
      `cd; mkdir deep; cd deep; i=0; while [ $i -lt 900 ]; do mkdir -p ${'a/'.repeat(30)} && cd ${'a/'.repeat(30)} || break; i=$((i+30)); done; echo $i`,
    );
    const pid = await agent();
    const leaving = new AbortController();
    const events = await place.files.watch(place.at('deep'), { recursive: true }, leaving.signal);
    const path = `${'a/'.repeat(900)}file`;

    await place.under.sh(`cd deep; for i in $(seq 1 30); do cd ${'a/'.repeat(30)}; done; : >file`);

    const told: string[] = [];
    for await (const batch of events) {
      told.push(...batch.map((event) => String(event.path)));
      if (told.includes(path)) break;
    }
    leaving.abort();
    expect(made).to.equal('900\n');
    expect(await agent()).to.equal(pid);
  });

  it('lists at most a mebibyte of paths at once, each with its folder', async () => {
    const folder = Array.from({ length: 15 }, () => 'n'.repeat(250)).join('/');
    await place.under.sh(
      `cd; for i in $(seq 1 15); do n=$(printf 'n%.0s' $(seq 1 250)); mkdir $n; cd $n; done; seq 1 2000 | xargs touch`,
    );
    const whole = place.at(folder).path.length;

    const page = await place.files.list(
      place.at(folder),
      { depth: 1, limit: 10_000 },
      new AbortController().signal,
    );

    const bytes = page.entries.map(({ path }) => whole + path.length);
    expect(bytes.reduce((sum, each) => sum + each, 0)).to.be.within(1 << 20, (1 << 20) + 8_192);
    expect(await place.list(folder, { limit: 10_000 })).to.have.length(2_000);
  });

  it('reports metadata that programs inside set, within the limits', async function () {
    if (!existsSync('/usr/bin/python3')) return skipBecause(this, 'there is no /usr/bin/python3');
    if (!tmpfsHasAttributes()) return skipBecause(this, NO_ATTRIBUTES);
    const script = `
import os
def file(name, *pairs):
    open(name, 'w').close()
    for key, value in pairs: os.setxattr(name, 'user.' + key, value)
file('set', ('e2b.a', b'1'), ('other', b'2'), ('e2b.b', 'é'.encode()), ('e2b.c', b'3\\0'), ('e2b.é', b'4'))
file('large', ('e2b.whole', b'x' * (4096 - 14)))
file('larger', ('e2b.whole', b'x' * (4096 - 13)))
file('many', *[('e2b.%03d' % at, b'x' * 100) for at in range(200)])
file('unread', ('e2b.a', b'1'))
os.chmod('unread', 0)
os.mkdir('folder')
os.setxattr('folder', 'user.e2b.a', b'1')
os.symlink('set', 'link')`;
    const { exitCode, stderr } = await watched.exec(id, ['python3', '-c', script], {
      cwd: '/home/sandbox',
    });
    expect([exitCode, String(stderr)]).to.deep.equal([0, '']);

    const { entries } = await place.files.list(
      place.at('.'),
      { depth: 1, limit: 100 },
      new AbortController().signal,
    );

    const { many, ...others } = Object.fromEntries(
      entries.map(({ path, stat: { metadata } }) => [String(path), metadata]),
    );
    expect(others).to.deep.equal({
      ...{ set: { a: '1' }, large: { whole: 'x'.repeat(4_096 - 14) } },
      ...{ larger: undefined, unread: undefined, folder: undefined, link: undefined },
    });
    expect(Object.keys(many ?? {})).to.have.length(Math.floor(4_096 / (9 + 3 + 100)));
  });

  it('ends with its sandbox, and so do running calls', async () => {
    await agent();
    const { content, flows } = anEndless();
    const written = rejection(place.put('file', content));
    await flows;
    const { revision } = (await watched.driver.read(id)).record ?? {};

    await watched.driver.retire(id, revision ?? '');

    expect(await written).to.be.instanceOf(OutcomeUnknown);
    await watched.log.when(id, 'gone');
    expect(await rejection(place.list('.'))).to.be.instanceOf(InstanceGone);
  });
});

const namespaceOf = (pid: number): string => /\d+/.exec(linkOf(pid, 'pid'))?.[0] ?? '';
const linkOf = (pid: number, kind: string): string =>
  spawnSync('readlink', [`/proc/${pid}/ns/${kind}`], { encoding: 'utf8' }).stdout.trim();
const commandOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1');
  } catch {
    return '';
  }
};
