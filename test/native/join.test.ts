import { expect } from 'chai';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, readlinkSync } from 'node:fs';
import { skipBecause } from '../support/harness/skip-because.ts';
import { eventually } from '../support/harness/eventually.ts';
import {
  asRoot,
  collect,
  commandLine,
  exec,
  insideUid,
  joinOrder,
  joinSandbox,
  makeCgroups,
  openWorkshop,
  orderText,
  processesIn,
  startSandbox,
  startTimeOf,
  statusOf,
  within,
  writable,
  type Ended,
  type JoinOptions,
  type OrderTokens,
  type Sandbox,
  type Workshop,
} from './support.ts';

describe('launcher join', function () {
  let workshop: Workshop;
  let sandbox: Sandbox;
  let cgroups: ReturnType<typeof makeCgroups>;

  before(async () => {
    workshop = openWorkshop();
    cgroups = makeCgroups(`sandpool-join-${process.pid}`);
    sandbox = await startSandbox(workshop, {
      command: ['sleep', '600'],
      cgroups: cgroups.folders,
      limits: [['rlimit', 'nofile', '300', '400']],
      env: { MAIN: 'only' },
    });
  });
  after(async () => {
    await sandbox.stop();
    await eventually(
      () => cgroups.folders.every((folder) => readFileSync(`${folder}/tasks`, 'utf8') === ''),
      'the cgroups are empty',
    );
    cgroups.close();
    workshop.close();
  });

  const run = (command: readonly string[], options: Partial<JoinOptions> = {}): Promise<Ended> =>
    exec(workshop, sandbox, { command, cgroups: cgroups.folders, ...options });

  it('passes on input, output, errors and the exit code', async () => {
    const half = joinSandbox(workshop, sandbox, {
      command: ['sh', '-c', 'cat; echo err >&2; exit 42'],
    });
    const collected = collect(half);
    half.stdin?.end('some input');

    expect(await within(collected.end, 'the command ends')).to.deep.equal({
      stdout: 'some input',
      stderr: 'err\n',
      code: 42,
      signal: null,
    });
  });

  it('runs the command with exactly the environment, folder and arguments of its order', async () => {
    const ended = await run(['sh', '-c', 'env | sort; pwd; echo "$0|$1"', 'a b', ''], {
      env: { PATH: '/usr/bin', X: '1=2\n3', OLD: '' },
      cwd: '/tmp',
    });

    expect(ended.stdout).to.equal('3\nOLD=\nPATH=/usr/bin\nPWD=/tmp\nX=1=2\n/tmp\na b|\n');
  });

  it('joins the same processes, files and host name', async () => {
    await run(['sh', '-c', 'echo shared >/work/file']);
    const ended = await run([
      'sh',
      '-c',
      'cat /work/file; hostname; id -u; id -g; cat /proc/2/comm',
    ]);

    expect(ended.stdout).to.equal(`shared\nsandbox\n${insideUid}\n${insideUid}\nsleep\n`);
  });

  it('hardens a command like the main process: ids, capabilities, filter, no_new_privs, limits and cgroups', async () => {
    const [, main = 0] = processesIn(sandbox);
    const half = joinSandbox(workshop, sandbox, {
      command: ['sleep', '60'],
      cgroups: cgroups.folders,
    });
    const joined = await commandOf(half, 'sleep');

    expect(standing(joined)).to.deep.equal(standing(main));
    expect(standing(joined).status).to.include({
      Seccomp: '2',
      NoNewPrivs: '1',
      CapBnd: '0000000000000000',
    });
    if (cgroups.folders.length > 0)
      expect(standing(joined).cgroup).to.include(`pids:/sandpool-join-${process.pid}`);
    await end(half);
  });

  it('drops the supplementary groups of its caller', async function () {
    if (!asRoot) skipBecause(this, 'needs root');

    const ended = await run(['grep', '^Groups:', '/proc/self/status'], {
      through: ['setpriv', '--groups', '4,27'],
    });

    expect(ended.stdout.trim()).to.equal('Groups:');
  });

  it('refuses to join a process of root on the host', async function () {
    if (!asRoot) skipBecause(this, 'needs root');
    const own = spawn('sleep', ['60'], { stdio: 'ignore' });
    await once(own, 'spawn');
    const pid = own.pid ?? 0;
    const ended = await exec(
      workshop,
      { ...sandbox, pid, startTime: startTimeOf(pid) ?? 'gone' },
      { command: ['true'] },
    );
    own.kill();

    expect([ended.code, ended.stderr]).to.deep.equal([
      125,
      "launcher: a sandbox of root's is not joined\n",
    ]);
  });

  it('closes every descriptor but the standard ones', async () => {
    const secret = openSync('/etc/hostname', 'r');
    const half = spawn(workshop.launcher, ['join'], {
      stdio: ['ignore', 'pipe', 'pipe', 'pipe', secret, secret, secret],
      env: {},
    });
    writable(half, 3).end(orderText(joinOrder(sandbox, { command: ['ls', '/proc/self/fd'] })));

    // 3 is by which ls lists them
    expect((await within(collect(half).end, 'the command ends')).stdout).to.equal('0\n1\n2\n3\n');
    closeSync(secret);
  });

  it('starts the command with no signal ignored or blocked', async () => {
    const ended = await run(['grep', '-E', 'Sig(Blk|Ign)', '/proc/self/status']);

    expect(ended.stdout).to.match(/^SigBlk:\t0+\nSigIgn:\t0+\n$/);
  });

  it('returns 128 + n for a command that signal n ended', async () => {
    expect((await run(['sh', '-c', 'kill -USR1 $$'])).code).to.equal(138);
    expect((await run(['sh', '-c', 'kill -KILL $$'])).code).to.equal(137);
  });

  it('returns 127 for a missing command and 126 for one that is not executable', async () => {
    expect(await run(['no-such-command'])).to.include({
      code: 127,
      stderr: 'launcher: no-such-command: No such file or directory\n',
    });
    expect((await run(['/usr'])).code).to.equal(126);
  });

  it('lets the command open its pipes by name', async () => {
    // A pipe as a shell makes it; node's own are sockets, which have no name to open.
    const shell = spawn('sh', ['-c', `'${workshop.launcher}' join | cat`], {
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    });
    writable(shell, 3).end(
      orderText(joinOrder(sandbox, { command: ['sh', '-c', 'echo by-name >/dev/stdout'] })),
    );

    expect(await within(collect(shell).end, 'the shell ends')).to.include({
      stdout: 'by-name\n',
      stderr: '',
    });
  });

  it('keeps background processes of the command running as long as the sandbox', async () => {
    await run(['sh', '-c', 'sleep 61 >/dev/null 2>&1 &']);

    await eventually(() => joinedOf('sleep 61').length === 1, 'it runs on');
    process.kill(joinedOf('sleep 61')[0] ?? 0, 'SIGKILL');
  });

  describe('if it fails, reports why on fd 2 and exits with 125', () => {
    const valid = (): OrderTokens => joinOrder(sandbox, { command: ['touch', '/work/reached'] });
    const without = (keyword: string): OrderTokens =>
      valid().filter(([first]) => first !== keyword);
    const faults: Readonly<Record<string, () => string>> = {
      'when the pid has another start time': () =>
        orderText(
          joinOrder(sandbox, {
            command: ['touch', '/work/reached'],
            startTime: String(Number(sandbox.startTime) - 1),
          }),
        ),
      'when there is no such process': () => orderText([...valid(), ['pid', '4194303']]),
      'when the order ends before its go': () => orderText(valid(), ''),
      'when no command is named': () => orderText(without('arg')),
      'when no process is named': () => orderText(without('pid')),
      'when no start time is named': () => orderText(without('starttime')),
      'when no uid inside is named': () => orderText(without('insideuid')),
      'when the uid inside is not mapped': () => orderText([...valid(), ['insideuid', '0']]),
      'when the folder is absent': () => orderText([...valid(), ['cwd', '/no/such']]),
      'when a cgroup is absent': () =>
        orderText([...valid(), ['cgroup', '/sys/fs/cgroup/no-such']]),
    };
    for (const [name, order] of Object.entries(faults)) {
      it(name, async () => {
        const half = spawn(workshop.launcher, ['join'], {
          stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
          env: {},
        });
        writable(half, 3).end(order());

        const ended = await within(collect(half).end, 'the launcher ends');

        expect(ended.code).to.equal(125);
        expect(ended.stderr).to.match(/^launcher: .+\n$/);
        expect((await run(['ls', '/work'])).stdout).to.not.include('reached');
      });
    }
  });

  it('kills the whole process group at SIGTERM, whatever it ignores', async () => {
    const half = joinSandbox(workshop, sandbox, {
      command: ['sh', '-c', 'trap "" TERM; sleep 62 & sleep 62 & echo ready; wait'],
    });
    const collected = collect(half);
    await collected.shows('ready');
    // The shell says that it is ready before its children have become what they run.
    await eventually(() => joinedOf('sleep 62').length === 2, 'both run');
    const before = joinedOf('sleep 62');

    half.kill('SIGTERM');

    expect((await within(collected.end, 'the parent half ends')).code).to.equal(137);
    await eventually(
      () => before.every((pid) => startTimeOf(pid) === undefined),
      'the group is dead',
    );
  });

  it('ends the command when its parent half dies', async () => {
    const half = joinSandbox(workshop, sandbox, { command: ['sleep', '63'] });
    const command = await commandOf(half, 'sleep');

    half.kill('SIGKILL');

    await eventually(() => startTimeOf(command) === undefined, 'the command is dead');
  });

  it('ends the command when the caller of its parent half dies', async () => {
    const caller = spawn('sh', ['-c', `'${workshop.launcher}' join; true`], {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    });
    writable(caller, 3).end(orderText(joinOrder(sandbox, { command: ['sleep', '64'] })));
    await eventually(() => joinedOf('sleep 64').length === 1, 'the command runs');

    caller.kill('SIGKILL');

    await eventually(() => joinedOf('sleep 64').length === 0, 'the command is dead');
  });

  it('ends with 137 when the sandbox is killed', async () => {
    const own = await startSandbox(workshop, { command: ['sleep', '600'] });
    const half = joinSandbox(workshop, own, { command: ['sh', '-c', 'echo ready; exec sleep 60'] });
    const collected = collect(half);
    await collected.shows('ready');

    await own.stop();

    expect((await within(collected.end, 'the parent half ends')).code).to.equal(137);
  });

  it('cannot be opened for writing by a script that names it as its interpreter', async () => {
    // The daemon's uid may own the launcher's file; a sandbox of that uid must get but a sealed copy.
    const own = await startSandbox(workshop, {
      command: ['sleep', '600'],
      startAs: asRoot ? 200_008 : undefined,
    });
    await exec(workshop, own, {
      command: ['sh', '-c', 'printf "#!/proc/self/exe\\n" >/work/script; chmod 755 /work/script'],
    });

    const half = joinSandbox(workshop, own, { command: ['/work/script'] });
    const ended = await within(collect(half).end, 'the launcher ends');

    expect(ended).to.include({
      code: 125,
      stderr:
        'launcher: called as: launcher start | init [ARGV...] | join | hold | files | call | run BYTES | terminal BYTES ARGV... | signal PID NUMBER | end PID NUMBER | watch | forward | logs FOLDER FILE_BYTES TOTAL_BYTES RETENTION_SECONDS\n',
    });
    const watching = joinSandbox(workshop, own, { command: ['/proc/self/exe', 'watch'] });
    await eventually(
      () => processesIn(own).some((pid) => commandLine(pid) === '/proc/self/exe watch'),
      'the launcher runs inside',
    );
    const seen = await exec(workshop, own, {
      command: [
        'sh',
        '-c',
        'for p in /proc/[0-9]*; do grep -q watch $p/cmdline && readlink $p/exe && (: >>$p/exe) 2>&1; done; true',
      ],
    });
    expect(seen.stdout)
      .to.match(/memfd:launcher/)
      .and.match(/Operation not permitted|Text file busy|Permission denied/);
    await end(watching);
    await own.stop();
  });

  function joinedOf(line: string): number[] {
    return processesIn(sandbox).filter((pid) => commandLine(pid) === line);
  }

  /** The host pid of the process that a parent half started, once it runs its command. */
  async function commandOf(half: ChildProcess, name: string): Promise<number> {
    let found: number | undefined;
    await eventually(() => {
      found = processesIn(sandbox).find(
        (pid) =>
          statusOf(pid).get('PPid') === String(half.pid) && statusOf(pid).get('Name') === name,
      );
      return found !== undefined;
    }, `${name} runs`);
    return found ?? 0;
  }

  async function end(half: ChildProcess): Promise<void> {
    const collected = collect(half);
    half.kill('SIGTERM');
    await within(collected.end, 'the command ends');
  }
});

/** Where a process stands, as the host sees it. */
export function standing(pid: number): {
  status: Record<string, string | undefined>;
  cgroup: string;
  limits: string;
  namespaces: string;
} {
  const status = statusOf(pid);
  const names = [
    'Uid',
    'Gid',
    'Groups',
    'CapInh',
    'CapPrm',
    'CapEff',
    'CapBnd',
    'CapAmb',
    'NoNewPrivs',
    'Seccomp',
    'Seccomp_filters',
    'Umask',
  ];
  return {
    status: Object.fromEntries(names.map((name) => [name, status.get(name)])),
    cgroup: readFileSync(`/proc/${pid}/cgroup`, 'utf8'),
    limits: readFileSync(`/proc/${pid}/limits`, 'utf8'),
    namespaces: ['user', 'mnt', 'pid', 'net', 'ipc', 'uts', 'cgroup']
      .map((name) => namespaceOf(pid, name))
      .join(' '),
  };
}

function namespaceOf(pid: number, name: string): string {
  return readlinkSync(`/proc/${pid}/ns/${name}`);
}
