import { expect } from 'chai';
import { spawn } from 'node:child_process';
import { openSync, closeSync, readFileSync } from 'node:fs';
import { skipBecause } from '../support/harness/skip-because.ts';
import { eventually } from '../support/harness/eventually.ts';
import {
  asRoot,
  collect,
  exec,
  hostUid,
  makeCgroups,
  openWorkshop,
  orderText,
  processesIn,
  startOrder,
  startSandbox,
  startTimeOf,
  statusOf,
  within,
  writable,
  type Ended,
  type OrderTokens,
  type Sandbox,
  type SandboxOptions,
  type Workshop,
} from './support.ts';

/** A uid that the launcher itself is started under, where the tests may choose. */
const unprivileged = asRoot ? { startAs: 200_007 } : {};

describe('launcher start', function () {
  let workshop: Workshop;
  let open: Sandbox[] = [];

  before(() => {
    workshop = openWorkshop();
  });
  after(() => workshop.close());
  afterEach(async () => {
    await Promise.all(open.map((sandbox) => sandbox.stop()));
    open = [];
  });

  it('runs the command only with the environment of its order', async () => {
    const sandbox = await start({
      command: ['sh', '-c', 'env | sort; tr "\\0" "," </proc/1/environ'],
      env: { GREETING: 'hello' },
    });

    const { stdout } = await within(sandbox.output.end, 'the command ends');

    expect(stdout).to.equal('GREETING=hello\nPATH=/usr/bin:/bin\nPWD=/work\n');
  });

  it('hides the command and its environment from argument lists', async () => {
    const sandbox = await start({ command: ['sleep', '60.125'], env: { SECRET: 'hidden-value' } });

    const shown = [sandbox.outer.pid, sandbox.pid]
      .map((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
      .join('\0');

    expect(shown).to.include('--seccomp').and.not.include('60.125').and.not.include('hidden-value');
  });

  it('closes every descriptor but the standard ones', async () => {
    const secret = openSync('/etc/hostname', 'r');
    const options = { command: ['sh', '-c', 'ls /proc/self/fd /proc/1/fd'] };
    const child = spawn(workshop.launcher, ['start'], {
      stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe', secret, secret, secret],
      env: {},
    });
    writable(child, 3).end(orderText(startOrder(workshop, options)));

    const { stdout } = await within(collect(child).end, 'the command ends');
    closeSync(secret);

    const [init = '', own = ''] = stdout.trim().split('\n\n');
    // ls lists its own folder by 3; what bwrap's init keeps is an eventfd of its own.
    expect(own.split('\n').slice(1)).to.deep.equal(['0', '1', '2', '3']);
    expect(init.split('\n').slice(1)).to.have.length.within(3, 4);
  });

  it('ends with the exit code of the command', async () => {
    const sandbox = await start({ command: ['sh', '-c', 'exit 7'] });

    expect((await within(sandbox.output.end, 'the command ends')).code).to.equal(7);
  });

  it('reports a missing command on the ready pipe, and exits with 127', async () => {
    const sandbox = await start({ command: ['/no/such', 'argument'] });

    expect(sandbox.ready).to.equal('ENOENT /no/such\n');
    expect((await within(sandbox.output.end, 'the launcher ends')).code).to.equal(127);
  });

  it('reports a command that is not executable, and exits with 126', async () => {
    const sandbox = await start({ command: ['/usr'] });

    expect(sandbox.ready).to.equal('EACCES /usr\n');
    expect((await within(sandbox.output.end, 'the launcher ends')).code).to.equal(126);
  });

  it('gives the sandbox its own host uid, no groups, no capabilities and a filter', async () => {
    const sandbox = await start({ command: ['sleep', '60'] });

    for (const pid of processesIn(sandbox))
      expect(hardening(pid), `process ${pid}`).to.deep.equal(hardened(hostUid));
  });

  it('drops the supplementary groups of its caller', async function () {
    if (!asRoot) skipBecause(this, 'needs root');
    const sandbox = await start({
      command: ['sleep', '60'],
      through: ['setpriv', '--groups', '4,27'],
    });

    for (const pid of processesIn(sandbox)) expect(hardening(pid).groups).to.equal('');
  });

  it("works the same for an unprivileged user, under the user's uid", async () => {
    const sandbox = await start({ command: ['sleep', '60'], ...unprivileged });

    const uid = unprivileged.startAs ?? hostUid;
    for (const pid of processesIn(sandbox))
      expect(hardening(pid), `process ${pid}`).to.deep.equal({
        ...hardened(uid),
        groups: hardening(pid).groups,
      });
    expect(await exec(workshop, sandbox, { command: ['sh', '-c', 'id -u; exit 3'] })).to.include({
      stdout: '1000\n',
      code: 3,
    });
  });

  it("sets limits and cgroups, and makes the host's OOM killer prefer the sandbox", async function () {
    const cgroups = makeCgroups(`sandpool-start-${process.pid}`);
    const sandbox = await start({
      command: ['sleep', '60'],
      cgroups: cgroups.folders,
      limits: [
        ['rlimit', 'nofile', '100', '200'],
        ['rlimit', 'fsize', '1048576', 'unlimited'],
      ],
    });
    const main = processesIn(sandbox).at(-1) ?? 0;

    const limits = readFileSync(`/proc/${main}/limits`, 'utf8');
    expect(limits)
      .to.match(/open files +100 +200/)
      .and.match(/file size +1048576 +unlimited/i)
      .and.match(/core file size +1 +1/);
    expect(readFileSync(`/proc/${main}/oom_score_adj`, 'utf8')).to.equal('500\n');
    for (const folder of cgroups.folders)
      expect(readFileSync(`${folder}/tasks`, 'utf8').split('\n')).to.include(String(main));

    await sandbox.stop();
    await eventually(
      () => cgroups.folders.every((folder) => readFileSync(`${folder}/tasks`, 'utf8') === ''),
      'the cgroups are empty',
    );
    cgroups.close();
  });

  it('ends completely when the init of its namespace is killed', async () => {
    const sandbox = await start({ command: ['sh', '-c', 'sleep 60 & setsid sleep 60 & sleep 60'] });
    await eventually(() => processesIn(sandbox).length === 5, 'all have started');
    const all = processesIn(sandbox);

    process.kill(sandbox.pid, 'SIGKILL');
    await within(sandbox.output.end, 'bwrap ends');

    expect(all.filter((pid) => startTimeOf(pid) !== undefined)).to.deep.equal([]);
  });

  describe('does nothing and exits with 125', () => {
    const whole = (): OrderTokens => startOrder(workshop, { command: ['touch', '/work/x'] });
    const faults: Readonly<Record<string, () => string>> = {
      'without an order': () => '',
      'where the order ends before its go': () => orderText(whole(), ''),
      'where the go is cut off': () => orderText(whole(), 'go'),
      'where go is but the value of a keyword': () => orderText([...whole(), ['arg']]),
      'where the order goes on after its go': () => orderText(whole(), 'go\0arg\0'),
      'for an unknown keyword': () => orderText([...whole(), ['chroot', '/']]),
      'for a malformed number': () => orderText([['uid', '1x'], ...whole()]),
      'for an unknown limit': () => orderText([['rlimit', 'cpu', '1', '1'], ...whole()]),
      'for a cgroup that is absent': () =>
        orderText([['cgroup', '/sys/fs/cgroup/pids/no-such'], ...whole()]),
      'where the command is not the launcher': () =>
        orderText([
          ['bwrap', '/usr/bin/bwrap'],
          ['uid', '1'],
          ['gid', '1'],
          ['arg', '--'],
          ['arg', 'sh'],
        ]),
      ...(asRoot
        ? {
            'as root without a host uid': () =>
              orderText(whole().filter(([keyword]) => keyword !== 'uid')),
            'for host uid 0': () => orderText([...whole(), ['uid', '0']]),
          }
        : {}),
    };
    for (const [name, order] of Object.entries(faults)) {
      it(name, async () => {
        const ended = await give(order());

        expect(ended.code).to.equal(125);
        expect(ended.stderr).to.match(/^launcher: .+\n$/);
      });
    }

    it('for a uid that an unprivileged user does not have', async () => {
      const order = orderText([...whole(), ['uid', '12345']]);

      expect((await give(order, asRoot ? { uid: 200_007, gid: 200_007 } : {})).code).to.equal(125);
    });
  });

  it('leaves an error of bwrap on fd 2 and exits with its code', async () => {
    const order = startOrder(workshop, {
      command: ['true'],
      extraBwrap: ['--ro-bind', '/no/such', '/x'],
    });

    const ended = await give(orderText(order));

    expect(ended.code).to.equal(1);
    expect(ended.stderr).to.include("Can't find source path /no/such");
  });

  it('passes on commands and environments of any length that the kernel accepts', async () => {
    const long = 'x'.repeat(100_000);
    const sandbox = await start({
      command: ['sh', '-c', 'echo ${#0} ${#LONG} $1', long, '--'],
      env: { LONG: long },
    });

    expect((await within(sandbox.output.end, 'the command ends')).stdout).to.equal(
      '100000 100000 --\n',
    );
  });

  it('accepts an environment value of --', async () => {
    const sandbox = await start({ command: ['sh', '-c', 'echo $DASHES'], env: { DASHES: '--' } });

    expect((await within(sandbox.output.end, 'the command ends')).stdout).to.equal('--\n');
  });

  async function start(options: SandboxOptions): Promise<Sandbox> {
    const sandbox = await startSandbox(workshop, options);
    open.push(sandbox);
    return sandbox;
  }

  async function give(
    order: string,
    identity: { uid?: number; gid?: number } = {},
  ): Promise<Ended> {
    const child = spawn(workshop.launcher, ['start'], {
      stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe'],
      env: {},
      ...identity,
    });
    writable(child, 3).end(order);
    return within(collect(child).end, 'the launcher ends');
  }
});

interface Hardening {
  readonly uid: string | undefined;
  readonly gid: string | undefined;
  readonly groups: string | undefined;
  readonly seccomp: string | undefined;
  readonly noNewPrivileges: string | undefined;
  readonly capabilities: readonly (string | undefined)[];
}

function hardening(pid: number): Hardening & Record<string, unknown> {
  const status = statusOf(pid);
  return {
    uid: status.get('Uid'),
    gid: status.get('Gid'),
    groups: status.get('Groups')?.trim(),
    seccomp: status.get('Seccomp'),
    noNewPrivileges: status.get('NoNewPrivs'),
    capabilities: ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'].map((name) =>
      status.get(name),
    ),
  };
}

function hardened(uid: number): Hardening & Record<string, unknown> {
  const ids = Array(4).fill(String(uid)).join('\t');
  return {
    uid: ids,
    gid: ids,
    groups: '',
    seccomp: '2',
    noNewPrivileges: '1',
    capabilities: Array(5).fill('0'.repeat(16)),
  };
}
