import { expect } from 'chai';
import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { skipBecause } from '../support/harness/skip-because.ts';
import { eventually } from '../support/harness/eventually.ts';
import {
  asRoot,
  collect,
  hostUid,
  makeCgroups,
  openWorkshop,
  orderText,
  readable,
  startTimeOf,
  statusOf,
  within,
  writable,
  type Collected,
  type Ended,
  type OrderTokens,
  type Workshop,
} from './support.ts';

const IDS: OrderTokens = [
  ['uid', String(hostUid)],
  ['gid', String(hostUid)],
];
const PATH: OrderTokens = [['env', 'PATH=/usr/bin:/bin']];
const command = (...argv: readonly string[]): OrderTokens => argv.map((arg) => ['arg', arg]);

interface Bare {
  readonly outer: ChildProcess;
  readonly pid: number;
  readonly ready: string;
  readonly output: Collected;
}

describe('the launcher without isolation', function () {
  let workshop: Workshop;
  let open: number[] = [];

  before(() => {
    workshop = openWorkshop();
  });
  after(() => workshop.close());
  afterEach(() => {
    for (const pid of open) if (startTimeOf(pid) !== undefined) process.kill(pid, 'SIGKILL');
    open = [];
  });

  const launch = (
    mode: 'start' | 'join',
    tokens: OrderTokens,
  ): { readonly child: ChildProcess; readonly output: Collected } => {
    const child = spawn(workshop.launcher, [mode], {
      stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe'],
      env: { HOST_SECRET: 'of the daemon' },
    });
    writable(child, 3).end(orderText(tokens));
    return { child, output: collect(child) };
  };
  const start = async (...tokens: readonly OrderTokens[]): Promise<Bare> => {
    const { child, output } = launch('start', [['bare'], ...IDS, ...PATH, ...tokens.flat()]);
    const [info, ready] = await within(
      Promise.all([text(child, 4), text(child, 5)]),
      'both pipes close',
    );
    const pid = Number(/"child-pid": (\d+)/.exec(info)?.[1]);
    open.push(pid);
    return { outer: child, pid, ready, output };
  };
  const joinOrder = (pid: number, ...tokens: readonly OrderTokens[]): OrderTokens => [
    ['bare'],
    ['pid', String(pid)],
    ['starttime', startTimeOf(pid) ?? '1'],
    ['insideuid', String(hostUid)],
    ['insidegid', String(hostUid)],
    ...PATH,
    ...tokens.flat(),
  ];
  const join = (pid: number, ...tokens: readonly OrderTokens[]): Promise<Ended> =>
    within(launch('join', joinOrder(pid, ...tokens)).output.end, 'the command ends');

  it('runs the command in the folder and with the environment of its order', async () => {
    const { output, ready } = await start(
      [
        ['env', 'GREETING=hello'],
        ['cwd', '/usr'],
      ],
      command('sh', '-c', 'env | sort; pwd; exit 7'),
    );

    expect(ready).to.equal('');
    expect(await within(output.end, 'it ends')).to.include({
      stdout: 'GREETING=hello\nPATH=/usr/bin:/bin\nPWD=/usr\n/usr\n',
      code: 7,
    });
  });

  it('starts the command as its own child, which leads a session', async () => {
    const { outer, pid } = await start(command('sleep', '60'));

    const [, parent, group, session] = fieldsOf(pid);
    expect([parent, group, session].map(Number)).to.deep.equal([outer.pid, pid, pid]);
    expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8')).to.equal('sleep\0' + '60\0');
  });

  it('exits with 128 + n after signal n', async () => {
    const { pid, output } = await start(command('sleep', '60'));
    process.kill(pid, 'SIGKILL');

    expect((await within(output.end, 'it ends')).code).to.equal(137);
  });

  it('reports what failed on the ready pipe', async () => {
    expect((await start(command('/no/such'))).ready).to.equal('ENOENT /no/such\n');
    expect((await start(command('/usr'))).ready).to.equal('EACCES /usr\n');
    expect((await start([['cwd', '/no/such']], command('true'))).ready).to.equal(
      'chdir to /no/such: No such file or directory\n',
    );
  });

  it('reaps orphans of the command', async () => {
    const script =
      'orphan=$( (sleep 60 >/dev/null & echo $!) ); cat /proc/$orphan/stat | cut -d" " -f4; kill $orphan; while [ -e /proc/$orphan ]; do sleep 0.01; done; echo reaped';
    const { outer, output } = await start(command('sh', '-c', script));

    expect((await within(output.end, 'it ends')).stdout).to.equal(`${outer.pid}\nreaped\n`);
  });

  it('drops root, groups and capabilities, with equal limits and cgroups for joined commands', async () => {
    const cgroups = makeCgroups(`sandpool-bare-${process.pid}`);
    const folders: OrderTokens = cgroups.folders.map((folder) => ['cgroup', folder]);
    const { pid, output } = await start(
      folders,
      [['rlimit', 'nofile', '100', '200']],
      command('sleep', '60'),
    );
    const joined = launch(
      'join',
      joinOrder(pid, folders, command('sh', '-c', 'echo $$; exec sleep 60')),
    );
    await joined.output.shows('\n');
    const children = (): string =>
      readFileSync(`/proc/${joined.child.pid}/task/${joined.child.pid}/children`, 'utf8').trim();
    await eventually(() => /^\d+$/.test(children()), 'the command alone is left');
    const other = Number(children());

    for (const each of [pid, other]) {
      const status = statusOf(each);
      const shown = [
        'Uid',
        'Gid',
        'NoNewPrivs',
        'Seccomp',
        'CapInh',
        'CapPrm',
        'CapEff',
        'CapAmb',
      ].map((name) => status.get(name));
      const ids = Array.from({ length: 4 }, () => hostUid).join('\t');
      expect(shown).to.deep.equal([
        ids,
        ids,
        '1',
        statusOf(process.pid).get('Seccomp'),
        ...Array.from({ length: 4 }, () => '0'.repeat(16)),
      ]);
      if (asRoot) expect(status.get('Groups')?.trim()).to.equal('');
      expect(readFileSync(`/proc/${each}/limits`, 'utf8'))
        .to.match(/open files +100 +200/)
        .and.match(/core file size +1 +1/);
      for (const folder of cgroups.folders)
        expect(readFileSync(`${folder}/tasks`, 'utf8').split('\n')).to.include(String(each));
    }

    joined.child.kill('SIGTERM');
    process.kill(pid, 'SIGKILL');
    await within(Promise.all([joined.output.end, output.end]), 'both end');
    await eventually(
      () => cgroups.folders.every((folder) => readFileSync(`${folder}/tasks`, 'utf8') === ''),
      'the cgroups are empty',
    );
    cgroups.close();
  });

  it('joins in a separate folder and environment, and passes on the exit code', async () => {
    const { pid } = await start(command('sleep', '60'));

    expect(
      await join(
        pid,
        [
          ['cwd', '/usr'],
          ['env', 'A=b'],
        ],
        command('sh', '-c', 'echo $A $HOST_SECRET; pwd; exit 3'),
      ),
    ).to.include({ stdout: 'b\n/usr\n', code: 3 });
  });

  it('joins no ended process, and none with another start time', async () => {
    const { pid, output } = await start(command('sleep', '60'));
    const order = joinOrder(pid, command('true'));
    expect(await join(pid, [['starttime', '1']], command('true'))).to.include({ code: 125 });
    process.kill(pid, 'SIGKILL');
    await within(output.end, 'it ends');

    expect(await within(launch('join', order).output.end, 'it ends')).to.include({ code: 125 });
  });

  it('does nothing if the order names both bare and bwrap, neither, or no command', async () => {
    const orders: readonly OrderTokens[] = [
      [['bare'], ['bwrap', '/usr/bin/bwrap'], ...IDS, ...command('true')],
      [...IDS, ...command('true')],
      [['bare'], ...IDS],
      ...(asRoot ? [[['bare'], ...command('true')]] : []),
    ];
    for (const order of orders)
      expect((await within(launch('start', order).output.end, 'it ends')).code).to.equal(125);
  });

  it('refuses to run a command without isolation as root', async function () {
    if (!asRoot) skipBecause(this, 'needs root');
    const { pid } = await start(command('sleep', '60'));

    expect(await join(pid, [['insideuid', '0']], command('true'))).to.include({ code: 125 });
  });
});

const text = async (child: ChildProcess, fd: number): Promise<string> => {
  let all = '';
  for await (const chunk of readable(child, fd)) all += String(chunk);
  return all;
};

/** Fields 3 and on of the process's stat. */
const fieldsOf = (pid: number): readonly string[] =>
  readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
