import { expect } from 'chai';
import { availableParallelism } from 'node:os';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { buildLauncher } from '../../support/harness/a-spawned-driver.ts';
import { aWatchedDriver, type WatchedDriver } from '../../support/harness/a-watched-driver.ts';
import { v7 } from 'uuid';
import { aDefinition, anOrder } from '../../support/builders/instance-orders.ts';
import { rejection } from '../../support/harness/rejection.ts';
import { skipBecause } from '../../support/harness/skip-because.ts';

/** A wheel with a module and a program, made inside. */
const WHEEL = `
import zipfile
with zipfile.ZipFile('/tmp/hello-1-py3-none-any.whl', 'w') as wheel:
    info = 'hello-1.dist-info/'
    wheel.writestr('hello.py', 'def main():\\n    print("hello")\\n')
    wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: hello\\nVersion: 1\\n')
    wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(info + 'entry_points.txt', '[console_scripts]\\nhello = hello:main\\n')
    wheel.writestr(info + 'RECORD', '')
`;

/** Files that a sandbox has of its own. */
const OWN_ETC = new Set(
  ['passwd', 'group', 'hosts', 'hostname', 'nsswitch.conf', 'resolv.conf'].map(
    (name) => `/etc/${name}`,
  ),
);

describe('everyday programs in a sandbox', function () {
  let spawned: WatchedDriver;
  let id: string;

  const sh = async (script: string): Promise<string> => {
    const { stdout, stderr } = await spawned.exec(id, ['sh', '-c', script]);
    return `${String(stdout)}${String(stderr)}`;
  };

  before(async () => {
    buildLauncher();
    spawned = await aWatchedDriver();
    ({ id } = await spawned.launched());
  });
  after(() => spawned.close());

  it('has /workspace and /home/user as names of the home', async () => {
    expect(
      await sh(
        'echo one > /workspace/note; cat /home/user/note /home/sandbox/note; cd /workspace && pwd -P',
      ),
    ).to.equal('one\none\n/home/sandbox\n');
  });

  it('can write to /var/tmp and /run, and much to /dev/shm', async () => {
    expect(
      await sh(
        'for folder in /var/tmp /run /var/run; do echo two > $folder/note && cat $folder/note; done; df -k --output=size /dev/shm | tail -1',
      ),
    ).to.match(/^(two\n){3} *65536\n$/);
  });

  for (const workingDir of ['/app', '/a/b/c', '/tmp/made', '/home/other/made', '/workspace/made'])
    it(`can write to a working folder that Sandpool makes: ${workingDir}`, async () => {
      const made = await spawned.launched(anOrder(aDefinition({ workingDir })));

      expect(
        await spawned.sh(made.id, `echo three > note && cat note; ls -d ~; ls -i ${workingDir}`),
      ).to.equal(`three\n/home/sandbox\n${await spawned.sh(made.id, 'ls -i .')}`);
    });

  it('keeps its home if the working folder is above', async () => {
    const above = await spawned.launched(anOrder(aDefinition({ workingDir: '/home' })));

    expect(await spawned.sh(above.id, 'pwd; echo four > ~/note && cat sandbox/note')).to.equal(
      '/home\nfour\n',
    );
  });

  it('learns the name of a working folder that is missing', async () => {
    const cwd = '/home/sandbox/missing';
    const outcome = await spawned.exec(id, ['true'], { cwd });
    const order = { processId: v7(), tenant: 'alpha', argv: ['true'], stdin: false, cwd };
    const refusal = await rejection(spawned.driver.processes.run(id, order, { pace: false }));

    expect(String(outcome.stderr)).to.include(`the working folder ${cwd}: No such file`);
    expect(refusal).to.include({ field: 'cwd' });
    expect(String(refusal)).to.include(`the folder ${cwd} does not exist`);
  });

  it("has the machine's settings of toolchains, without secrets", async () => {
    const paths = (await sh('find /etc -type f -o -type l; find /etc -type d -empty')).trim();

    for (const path of paths.split('\n')) {
      if (OWN_ETC.has(path) || !existsSync(path)) continue;
      expect(statSync(path).mode & 0o004, path).to.equal(0o004);
      expect(path).to.not.match(/shadow|passw|private|secret|\/ssh\/|\.key$/);
    }
    for (const path of [
      '/etc/os-release',
      '/etc/services',
      '/etc/ssl/openssl.cnf',
      '/etc/fonts/fonts.conf',
    ])
      if (existsSync(path)) expect(await sh(`cat ${path}`)).to.equal(readFileSync(path, 'utf8'));
  });

  it('finds its own limits, and no others, where runtimes look', async function () {
    const { isolation } = spawned.driver.describe();
    if (!isolation.startsWith('cgroup')) skipBecause(this, 'there are no cgroups here');
    const [memory, processes] =
      isolation === 'cgroup-v1'
        ? ['memory/memory.limit_in_bytes', 'pids/pids.max']
        : ['memory.max', 'pids.max'];

    expect(await sh(`cd /sys/fs/cgroup && cat ${memory} ${processes}`)).to.equal(
      `${128 * 2 ** 20}\n64\n`,
    );
    expect(
      await sh('grep -E ":(memory|pids|):" /proc/self/cgroup | cut -d: -f3 | sort -u'),
    ).to.equal('/\n');
    expect(await sh('find /sys -writable; find /sys -mindepth 5 -type d')).to.equal('');
    expect(await sh(`(echo 1 > /sys/fs/cgroup/${processes}) 2>&1`)).to.include('Read-only');
  });

  it('sizes runtimes by its limits, unless the template does', async () => {
    const one = await spawned.launched(anOrder(aDefinition({ cpuCores: 0.5 })));
    const env = { OMP_NUM_THREADS: '7', GOMAXPROCS: '8' };
    const own = await spawned.launched(anOrder(aDefinition({ cpuCores: 0.5, env })));
    const threads = availableParallelism() > 1 ? '1 1\n1\n' : ' \n1\n';

    expect(await spawned.sh(one.id, 'echo $OMP_NUM_THREADS $GOMAXPROCS; nproc')).to.equal(threads);
    expect(await spawned.sh(own.id, 'echo $OMP_NUM_THREADS $GOMAXPROCS')).to.equal('7 8\n');
  });

  it('gives node and java a heap within its memory', async () => {
    const big = await spawned.launched(anOrder(aDefinition({ memoryBytes: 512 * 2 ** 20 })));
    const heap = 'console.log(require("v8").getHeapStatistics().heap_size_limit)';
    const flags = 'java -XX:+PrintFlagsFinal -version 2>/dev/null | grep -w MaxHeapSize';

    if (existsSync('/usr/bin/java'))
      expect(Number(/= (\d+)/.exec(await spawned.sh(big.id, flags))?.[1])).to.equal(128 * 2 ** 20);
    if (existsSync('/usr/bin/node'))
      expect(Number(await spawned.sh(big.id, `node -e '${heap}'`))).to.be.below(512 * 2 ** 20);
  });

  it('runs java if the machine has it', async function () {
    if (!existsSync('/usr/bin/java')) skipBecause(this, 'needs java in /usr/bin');
    const java = await spawned.launched(anOrder(aDefinition({ memoryBytes: 512 * 2 ** 20 })));
    const main = 'class A { public static void main(String[] a) { System.out.println(1 + 1); } }';

    expect(await spawned.sh(java.id, `echo '${main}' > A.java && java A.java`)).to.equal('2\n');
  });

  it('can listen on a port below 1024, and ping itself', async function () {
    if (process.getuid?.() !== 0) skipBecause(this, 'needs root');
    const listens =
      'import socket; s = socket.create_server(("127.0.0.1", 80)); socket.create_connection(("127.0.0.1", 80)); s.accept(); socket.create_server(("::1", 443), family=socket.AF_INET6); print("open")';
    const pings =
      'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP); s.connect(("127.0.0.1", 0)); s.send(bytes([8, 0, 0, 0, 0, 0, 0, 1])); print(s.recv(64)[0])';

    expect(await sh(`python3 -c '${listens}'; python3 -c '${pings}'`)).to.equal('open\n0\n');
    expect(await sh('cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d " "')).to.equal('lo\n');
  });

  it('has no rights in its network, and leaves the host its settings', async () => {
    const settings = 'ip_unprivileged_port_start';
    const before = readFileSync(`/proc/sys/net/ipv4/${settings}`, 'utf8');
    await spawned.launched();

    expect(readFileSync(`/proc/sys/net/ipv4/${settings}`, 'utf8')).to.equal(before);
    expect(
      await sh(`(echo 5 > /proc/sys/net/ipv4/${settings}) 2>/dev/null || echo refused`),
    ).to.equal('refused\n');
    expect(
      await sh(`python3 -c '
import socket
try: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
except PermissionError: print("refused")'`),
    ).to.equal('refused\n');
  });

  it('knows its user as `user` too', async () => {
    expect(await sh('id -u user; id -g user; id -un; echo ~user')).to.equal(
      '1000\n1000\nsandbox\n/home/user\n',
    );
  });

  it('has python if the machine has only python3', async function () {
    if (!existsSync('/usr/bin/python3')) skipBecause(this, 'needs python3 in /usr/bin');
    expect(await sh('python -c "import sys; print(sys.version_info[0], sys.prefix)"')).to.match(
      /^3 \/usr/,
    );
    expect(
      await sh("printf '#!/usr/bin/env python\\nprint(1)\\n' > ~/x; chmod +x ~/x; ~/x"),
    ).to.equal('1\n');
  });

  it('installs packages by pip into the home, and into a venv', async function () {
    if (!existsSync('/usr/bin/pip3')) skipBecause(this, 'needs pip3 in /usr/bin');
    await spawned.exec(id, ['python3', '-c', WHEEL]);
    const install = 'install -q --no-index --no-cache-dir --disable-pip-version-check';

    expect(await sh(`pip ${install} --user /tmp/hello-1-py3-none-any.whl && hello`)).to.equal(
      'hello\n',
    );
    expect(
      await sh(
        `python -m venv --without-pip /tmp/venv && pip --python /tmp/venv/bin/python ${install} /tmp/hello-1-py3-none-any.whl && /tmp/venv/bin/hello`,
      ),
    ).to.equal('hello\n');
  });
});
