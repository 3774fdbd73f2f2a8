import { expect } from 'chai';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { nameOf } from '../../src/embedded/spawner/protocol.ts';
import {
  absentOrForbidden,
  allowedCalls,
  parse,
  pick,
  refusedCalls,
  refusedFiles,
  type Answers,
} from '../native/probe-answers.ts';
import { TerminalUnderTest } from '../support/harness/a-terminal.ts';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import { eventually } from '../support/harness/eventually.ts';
import type { HttpClient } from '../support/harness/http-client.ts';
import { aTemplateFolder, claim, run, stocked } from '../support/harness/on-a-daemon.ts';
import {
  cgroupOf,
  descriptorsOf,
  idsInside,
  initOf,
  namespacesOf,
  processesBeside,
  statusField,
  withCommand,
} from '../support/harness/seen-from-the-host.ts';
import { skipBecause } from '../support/harness/skip-because.ts';
import { line } from '../support/harness/line.ts';

const asRoot = process.getuid?.() === 0;
const SECRET = 'of-the-daemon-alone';

/**
 * Unpacks the probe, waits for its arguments, runs it as the main process's own child, and stays.
 */
const MAIN = `cd /tmp; printf %s "$@" | base64 -d | gunzip > probe; chmod 755 probe
while [ ! -e go ]; do sleep 0.05; done
./probe $(cat go) > answers.new; mv answers.new answers; exec sleep infinity`;

/** The probe as text that fits into a template's arguments. */
const packedProbe = (): readonly string[] => {
  const folder = mkdtempSync(join(tmpdir(), 'sandpool-probe-'));
  try {
    const program = join(folder, 'probe');
    execFileSync('cc', [
      '-std=gnu11',
      '-Os',
      '-s',
      '-Wall',
      '-Wextra',
      '-Werror',
      '-o',
      program,
      fileURLToPath(new URL('../native/probe.c', import.meta.url)),
    ]);
    return (
      gzipSync(readFileSync(program), { level: 9 })
        .toString('base64')
        .match(/.{1,8000}/gs) ?? []
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
};

const isWritable = (path: string): boolean => {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
};

/** Whether this user may make cgroups that limit memory and processes. */
const machineHasCgroups = (): boolean =>
  ['memory', 'pids'].every((name) => isWritable(`/sys/fs/cgroup/${name}/tasks`)) ||
  (isWritable('/sys/fs/cgroup/cgroup.subtree_control') &&
    /\bmemory\b.*\bpids\b/s.test(readFileSync('/sys/fs/cgroup/cgroup.controllers', 'utf8')));

describe('escapes from a sandbox of a real daemon', function () {
  const templates = aTemplateFolder({
    probe: {
      containers: [
        {
          name: 'main',
          image: 'host',
          command: ['/bin/sh', '-c', MAIN, 'sh'],
          args: packedProbe(),
        },
      ],
    },
    wired: {
      containers: [
        {
          name: 'main',
          image: 'host',
          command: ['/bin/sh', '-c', MAIN, 'sh'],
          args: packedProbe(),
        },
      ],
      network: 'host',
    },
  });
  const host = createServer((socket) => socket.destroy());
  let daemon: DaemonUnderTest;
  let client: HttpClient;
  /** The one that probes, and one beside it. */
  let id: string;
  let neighbour: string;
  let secrets: readonly string[];
  /** A file of the host that everyone may read, but no sandbox sees. */
  const open = mkdtempSync(join(tmpdir(), 'sandpool-open-'));

  before(async function () {
    process.env['TEST_SECRET'] = SECRET;
    host.listen(0, '0.0.0.0');
    await once(host, 'listening');
    daemon = await DaemonUnderTest.start(line`--templates-dir ${templates.folder}
      --default-pool-replicas 2`).finally(() => {
      delete process.env['TEST_SECRET'];
    });
    client = daemon.client();
    await client.post('/sandboxpools', { name: 'probes', templateName: 'probe', replicas: 1 });
    await stocked(client, 2);
    id = await claim(client, 'probes');
    neighbour = await claim(client);
    await run(
      client,
      neighbour,
      'echo of the neighbour > /tmp/neighbours-own; chmod 777 /tmp/neighbours-own',
    );
    secrets = secretsOf();
  });

  after(async function () {
    host.close();
    await daemon.dispose();
    templates.remove();
    rmSync(open, { recursive: true });
  });

  /** What this machine has that no sandbox may reach, as arguments of the probe. */
  const secretsOf = (): readonly string[] => {
    const { dataDir } = daemon;
    writeFileSync(join(open, 'file'), 'readable to all, but not bound');
    chmodSync(open, 0o755);
    const pids = [daemon.run.process.pid ?? 0, initOf(dataDir, neighbour), process.pid];
    const address = host.address();
    const port = typeof address === 'object' && address ? address.port : 0;
    const outer = Object.values(networkInterfaces())
      .flat()
      .find((found) => found && !found.internal && found.family === 'IPv4');
    return [
      ...[
        dataDir,
        join(dataDir, 'keys'),
        join(dataDir, 'keys', 'tenant.key'),
        join(dataDir, 'keys', 'pepper'),
        join(dataDir, 'sandpool.db'),
        join(dataDir, 'run', neighbour),
        join(open, 'file'),
        join('/var/lib', nameOf(dataDir)),
        '/etc/shadow',
        '/root',
        '/home/root',
        '/var/lib',
        '/var/log',
        '/boot',
        '/sys/kernel',
        '/dev/sda',
        '/dev/vda',
        '/dev/pts/0',
        '/dev/pts/1',
        '/dev/tty',
        '/dev/console',
        ...pids.flatMap((pid) => [`/proc/${pid}/environ`, `/proc/${pid}/fd`, `/proc/${pid}/root`]),
      ].flatMap((path) => ['read', path]),
      ...[
        join(dataDir, 'sandpool.db'),
        join(dataDir, 'keys', 'tenant.key'),
        '/etc/passwd',
        '/proc/sys/kernel/hostname',
      ].flatMap((path) => ['write', path]),
      ...[
        join(dataDir, 'spawner.sock'),
        '/run/docker.sock',
        '/var/run/docker.sock',
        '/run/containerd/containerd.sock',
        '/run/dbus/system_bus_socket',
        '/run/systemd/private',
      ].flatMap((path) => ['unix', path]),
      'tcp',
      `127.0.0.1:${port}`,
      'tcp',
      `127.0.0.1:${daemon.run.port}`,
      ...(outer ? ['tcp', `${outer.address}:${port}`] : []),
    ];
  };

  const fromMain = async (args: readonly string[]): Promise<Answers> => {
    await run(client, id, 'cat > /tmp/go.new; mv /tmp/go.new /tmp/go', { stdin: args.join(' ') });
    const shown = await within(
      'the probe has ended',
      async () => (await run(client, id, 'cat /tmp/answers')).stdout || undefined,
    );
    return parse(shown);
  };

  const fromExec = async (args: readonly string[]): Promise<Answers> => {
    for (const piece of packedProbe()) await run(client, id, 'cat >> /tmp/sent', { stdin: piece });
    await run(client, id, 'base64 -d /tmp/sent | gunzip > /tmp/mine; chmod 755 /tmp/mine');
    return parse((await run(client, id, ['/tmp/mine', ...args])).stdout);
  };

  const fromTerminal = async (args: readonly string[]): Promise<Answers> => {
    const terminal = await TerminalUnderTest.open(daemon, client, id);
    await run(client, id, 'cat > /tmp/args', { stdin: args.join(' ') });
    await terminal.ask('/tmp/probe $(cat /tmp/args) > /tmp/typed');
    await terminal.hangUp();
    return parse((await run(client, id, 'cat /tmp/typed')).stdout);
  };

  it('are prevented with cgroups if the machine has them', async () => {
    const { isolation } = JSON.parse((await client.get('/readyz')).text) as { isolation: string };
    expect(isolation).to.be.oneOf(
      machineHasCgroups() ? ['cgroup-v1', 'cgroup-v2'] : ['cgroup-v1', 'cgroup-v2', 'prlimit'],
    );
  });

  for (const [way, probe] of [
    ['its main process', fromMain],
    ['a command over REST', fromExec],
    ['a terminal', fromTerminal],
  ] as const) {
    describe(`tried from ${way}`, () => {
      let answers: Answers;

      before(async () => {
        answers = await probe(secrets);
      });

      it('by system calls are refused, while ordinary calls work', () => {
        expect(pick(answers, { ...refusedCalls, ...allowedCalls })).to.deep.equal({
          ...refusedCalls,
          ...allowedCalls,
        });
      });

      it("by the kernel's files, including /proc/sys, find them absent or forbidden", () => {
        for (const name of refusedFiles)
          expect(absentOrForbidden, `${name}: ${answers[name]}`).to.include(answers[name]);
      });

      it('to files, processes and sockets of daemon, host and neighbours fail', () => {
        expect(secrets.length).to.be.greaterThan(60);
        for (let at = 0; at < secrets.length; at += 2) {
          const name = `${secrets[at]} ${secrets[at + 1]}`;
          // A terminal has itself, as /dev/tty and as the first of its sandbox.
          if (way === 'a terminal' && ['read /dev/tty', 'read /dev/pts/0'].includes(name)) continue;
          expect(
            [...absentOrForbidden, 'ENXIO', 'ENETUNREACH', 'ECONNREFUSED'],
            `${name}: ${answers[name]}`,
          ).to.include(answers[name]);
        }
      });

      it('by other processes, descriptors, terminals or interfaces find none', () => {
        const processes = (answers['processes'] ?? '').split(' ').map(Number);
        expect(processes[0]).to.equal(1);
        expect(processes.length).to.be.within(2, 6);
        expect(answers).to.include({
          descriptors: '0 1 2 3',
          terminals: way === 'a terminal' ? '. .. 0 ptmx' : '. .. ptmx',
          interfaces: 'default lo',
        });
      });
    });
  }

  it("fail in the same way on the host's network", async () => {
    await client.post('/sandboxpools', { name: 'wired', templateName: 'wired', replicas: 1 });
    const wired = await claim(client, 'wired');
    const asked = secrets.filter((_, at) => secrets[at - (at % 2)] !== 'tcp');
    await run(client, wired, 'cat > /tmp/go.new; mv /tmp/go.new /tmp/go', {
      stdin: asked.join(' '),
    });
    const answers = parse(
      await within(
        'the probe has ended',
        async () => (await run(client, wired, 'cat /tmp/answers')).stdout || undefined,
      ),
    );
    expect(pick(answers, refusedCalls)).to.deep.equal(refusedCalls);
    for (let at = 0; at < asked.length; at += 2)
      expect(
        [...absentOrForbidden, 'ENXIO', 'ECONNREFUSED'],
        `${asked[at]} ${asked[at + 1]}`,
      ).to.include(answers[`${asked[at]} ${asked[at + 1]}`]);
    await client.delete('/sandboxpools/wired?force=true');
  });

  it('find nothing of the daemon in the environment of any process inside', async () => {
    const seen = (await run(client, id, 'cat /proc/[0-9]*/environ | tr "\\0" "\\n"')).stdout;
    expect(seen).to.include('HOME=/home/sandbox');
    for (const part of [
      SECRET,
      daemon.dataDir,
      'SANDPOOL',
      'NODE_',
      process.env['PATH'] ?? 'PATH?',
    ])
      expect(seen, part).to.not.include(part);
    const names = seen
      .split('\n')
      .filter((line) => line.includes('='))
      .map((line) => line.split('=')[0]);
    expect([
      'GOMAXPROCS',
      'HOME',
      'JAVA_TOOL_OPTIONS',
      'LANG',
      'LOGNAME',
      'OLDPWD',
      'OMP_NUM_THREADS',
      'PATH',
      'PIP_BREAK_SYSTEM_PACKAGES',
      'PWD',
      'SHELL',
      'USER',
    ]).to.include.members([...new Set(names)]);
  });

  it('cannot reach an open terminal of a neighbour, but only their own', async () => {
    const other = await TerminalUnderTest.open(daemon, client, neighbour);
    await other.ask('true');
    const tty = (await other.ask('tty')).trim();
    for (const isOpened of [true, false]) {
      await within(
        'the last one of its own is given back',
        async () => (await run(client, id, 'ls /dev/pts')).stdout === 'ptmx\n' || undefined,
      );
      const opened = isOpened ? await TerminalUnderTest.open(daemon, client, id) : undefined;
      const look =
        'ls /dev/pts; for n in 0 1 2 3 4 5 6 7 8 9; do echo typed > /dev/pts/$n; done; ls -l /proc/self/fd | grep -c ptmx; echo looked';
      const seen = opened
        ? await opened.ask(`{ ${look}; } 2>/dev/null`)
        : (await run(client, id, look)).stdout;
      await opened?.hangUp();
      expect(seen.split(/\s+/).filter((word) => word !== '')).to.deep.equal(
        opened ? ['0', 'ptmx', 'typed', '0', 'looked'] : ['ptmx', '0', 'looked'],
      );
    }
    const shell = withCommand(processesBeside(initOf(daemon.dataDir, neighbour)), 'bash') ?? 0;
    expect(Object.keys(descriptorsOf(shell)).filter((fd) => Number(fd) <= 2)).to.have.length(3);
    for (const target of Object.values(descriptorsOf(shell)))
      expect(target, `a shell holds ${tty} alone`).to.match(/^\/dev\/(pts\/\d+|tty)$/);
    expect(other.output).to.not.include('typed');
    await other.hangUp();
  });

  it('find no descriptors inside but null, their own pipes, log and terminal', async () => {
    const terminal = await TerminalUnderTest.open(daemon, client, id);
    await terminal.ask('true');
    const command = client.post(`/sandboxes/${id}/exec`, {
      command: ['sleep', '3301'],
      timeoutSeconds: 20,
    });
    const pids = await within('it runs', () => {
      const all = processesBeside(initOf(daemon.dataDir, id));
      return withCommand(all, 'sleep 3301') === undefined ? undefined : all;
    });
    const log = `${daemon.dataDir}/logs/pipes/${id}`;
    const isItsOwn = (fd: string, target: string): boolean =>
      target.startsWith('/dev/pts')
        ? /^\/dev\/pts\/\d+$/.test(target) && (Number(fd) <= 2 || fd === '255')
        : (target === log && (fd === '1' || fd === '2')) ||
          /^(\/dev\/null|pipe:\[\d+\]|\/dev\/tty|socket:\[\d+\]|anon_inode:\[.*\])?$/.test(target);
    const others = (): readonly string[] =>
      pids.flatMap((pid) =>
        Object.entries(descriptorsOf(pid)).flatMap(([fd, target]) =>
          isItsOwn(fd, target) ? [] : [`${pid} has ${fd} open: ${target}`],
        ),
      );
    // A program that is being loaded has its libraries open for a moment; what leaks stays.
    await eventually(() => others().length === 0, 'nothing else is open').catch(() => undefined);
    const left = others();
    await run(
      client,
      id,
      'pkill -f "sleep 3301" || kill $(grep -l "sleep.3301" /proc/[0-9]*/cmdline | cut -d/ -f3)',
    );
    await command;
    await terminal.hangUp();
    expect(left).to.deep.equal([]);
  });

  it('meet the same filter, capabilities, uid, namespaces and cgroup in main process, command and terminal', async () => {
    const terminal = await TerminalUnderTest.open(daemon, client, id);
    terminal.type('sleep 3303\n');
    const command = client.post(`/sandboxes/${id}/exec`, {
      command: ['sleep', '3302'],
      timeoutSeconds: 20,
    });
    const [main, ran, typed] = await within('all three run', () => {
      const all = processesBeside(initOf(daemon.dataDir, id));
      const found = ['/.sandpool/launcher init', 'sleep 3302', 'sleep 3303'].map((words) =>
        withCommand(all, words),
      );
      return found.includes(undefined) ? undefined : found.map(Number);
    });
    const described = (pid = 0): object => ({
      ...Object.fromEntries(
        [
          'Seccomp',
          'NoNewPrivs',
          'CapInh',
          'CapPrm',
          'CapEff',
          'CapBnd',
          'CapAmb',
          'Uid',
          'Gid',
          'Groups',
        ].map((field) => [field, statusField(pid, field)]),
      ),
      cgroups: cgroupOf(pid),
      ...namespacesOf(pid),
      oom: readFileSync(`/proc/${pid}/oom_score_adj`, 'utf8'),
      limits: readFileSync(`/proc/${pid}/limits`, 'utf8').match(
        /^Max (open files|core file size|processes).*$/gm,
      ),
    });
    expect(described(main)).to.include({
      Seccomp: '2',
      NoNewPrivs: '1',
      CapEff: '0000000000000000',
      CapPrm: '0000000000000000',
      CapBnd: '0000000000000000',
      CapAmb: '0000000000000000',
      Groups: '',
    });
    expect(described(ran)).to.deep.equal(described(main));
    expect(described(typed)).to.deep.equal(described(main));
    if (machineHasCgroups()) expect(cgroupOf(main ?? 0)).to.include(id);
    terminal.type('\u0003');
    await terminal.hangUp();
    process.kill(ran ?? 0, 'SIGKILL');
    await command;
  });

  it('find a host uid in every process that no other sandbox has', async function () {
    if (!asRoot) skipBecause(this, 'the daemon is not root: its sandboxes have its own uid');
    const sandboxes = [id, neighbour].map((sandbox) => ({
      init: initOf(daemon.dataDir, sandbox),
      ids: new Set<string>(),
    }));
    const look = (): void => {
      for (const { init, ids } of sandboxes) for (const found of idsInside(init)) ids.add(found);
    };
    // What joins, too, from its first moment.
    let joins = 40;
    let over = false;
    const looking = (): void => {
      look();
      if (!over) setImmediate(looking);
    };
    looking();
    await Promise.all(
      [id, neighbour].map(async (sandbox) => {
        while (joins-- > 0) await run(client, sandbox, 'true');
      }),
    ).finally(() => {
      over = true;
    });
    const [mine = [], others = []] = sandboxes.map(({ ids }) => [...ids]);
    expect(mine, 'ids of one').to.have.length(1);
    expect(others, 'ids of the other').to.have.length(1);
    expect(mine).to.not.deep.equal(others);
    for (const ids of [mine, others])
      for (const one of (ids[0] ?? '0').split('\t'))
        expect(Number(one)).to.be.within(2_000_000_000, 2_000_065_535);
  });

  it('by programs that change user or namespace fail', async () => {
    for (const command of [
      'unshare -U true',
      'unshare -n true',
      'mount -t tmpfs none /tmp',
      'bwrap --ro-bind / / true',
      'chroot / true',
      'su -c true',
      'setpriv --reuid 0 true',
      'nsenter -t 1 -m true',
      'hostname x',
    ]) {
      expect((await run(client, id, command)).exitCode, command).to.not.equal(0);
    }
    expect((await run(client, id, 'id -u; id -G; cat /proc/sys/kernel/hostname')).stdout).to.equal(
      '1000\n1000\nsandbox\n',
    );
  });

  it('cannot lower their OOM score or raise their priority', async () => {
    const seen = (
      await run(
        client,
        id,
        'for p in 1 self; do echo -1000 > /proc/$p/oom_score_adj; nice -n -5 true; cat /proc/$p/oom_score_adj; done 2>/dev/null',
      )
    ).stdout;
    expect(seen).to.match(/^(\d+)\n\1\n$/);
    expect(Number.parseInt(seen, 10)).to.be.greaterThan(0);
  });

  it('cannot write outside of home, /run, /tmp and /dev/shm', async () => {
    const tried =
      'for d in / /usr /usr/bin /etc /dev /proc /.sandpool /bin /home /sys /sys/fs/cgroup /var /opt /dev/pts; do touch $d/x 2>/dev/null && echo $d; done; for d in ~ /run /tmp /dev/shm; do touch $d/x && echo $d; done';
    expect((await run(client, id, tried)).stdout).to.equal('/home/sandbox\n/run\n/tmp\n/dev/shm\n');
    expect(existsSync('/usr/x')).to.equal(false);
  });

  it('cannot see files of a neighbour, whatever their mode', async () => {
    expect((await run(client, neighbour, 'cat /tmp/neighbours-own')).stdout).to.equal(
      'of the neighbour\n',
    );
    expect(
      (await run(client, id, 'cat /tmp/neighbours-own; find / -name neighbours-own 2>/dev/null'))
        .stdout,
    ).to.equal('');
  });

  it('can neither see nor signal processes of a neighbour', async () => {
    const init = initOf(daemon.dataDir, neighbour);
    const ran = await run(
      client,
      id,
      `kill -9 ${init}; kill -9 ${daemon.run.process.pid}; kill -9 -- -1; true`,
    );
    expect(ran.timedOut).to.equal(false);
    expect((await run(client, neighbour, 'echo lives')).stdout).to.equal('lives\n');
    expect((await client.get('/readyz')).status).to.equal(200);
  });
});
