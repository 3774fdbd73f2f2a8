import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { expect } from 'chai';
import { buildLauncher } from '../../support/harness/a-spawned-driver.ts';
import { aWatchedDriver, type WatchedDriver } from '../../support/harness/a-watched-driver.ts';
import { eventually, NEVER_COMES_MS } from '../../support/harness/eventually.ts';
import { aDefinition, anOrder } from '../../support/builders/instance-orders.ts';
import { skipBecause } from '../../support/harness/skip-because.ts';

const MIB = 2 ** 20;

describe('the limits of a sandbox', function () {
  let spawned: WatchedDriver;

  before(async () => {
    buildLauncher();
    spawned = await aWatchedDriver();
  });
  after(() => spawned.close());

  const noisy = () => spawned.launched(anOrder(aDefinition({ memoryBytes: 64 * MIB })));
  const ended = async (id: string): Promise<void> => {
    const stored = await spawned.records.read(id);
    await spawned.driver.retire(id, stored?.record.revision ?? '');
    await spawned.log.when(id, 'gone');
  };
  /** Runs `script` in one sandbox while another echoes twenty times; the id of the first. */
  const besideOf = async (script: string): Promise<string> => {
    const [loud, quiet] = [await noisy(), await spawned.launched()];
    const terminal = await spawned.driver.attach(quiet.id, { argv: ['cat'], cols: 80, rows: 24 });
    const flood = spawned.exec(loud.id, ['sh', '-c', script], { timeoutMs: 4_000 });
    let seen = '';
    terminal.stream.on('data', (bytes: Buffer) => {
      seen += String(bytes);
    });
    for (let i = 0; i < 20; i += 1) {
      const echoed = new Promise<void>((resolve) => {
        const look = (): void => {
          if (seen.includes(`echo ${i}.`)) {
            terminal.stream.off('data', look);
            resolve();
          }
        };
        terminal.stream.on('data', look);
      });
      terminal.stream.write(`echo ${i}.`);
      await echoed;
    }
    terminal.close();
    await terminal.exit;
    await flood;
    await ended(quiet.id);
    return loud.id;
  };

  it('are cgroups if the machine has them', function () {
    if (process.getuid?.() !== 0) skipBecause(this, 'cgroups need root, or a delegated subtree');
    expect(spawned.driver.describe().isolation).to.be.oneOf(['cgroup-v1', 'cgroup-v2']);
  });

  it("give the template's processor share from the start, and more only to start", async function () {
    if (!spawned.driver.describe().isolation.startsWith('cgroup'))
      skipBecause(this, 'there are no cgroups here');
    const { id } = await spawned.launched(anOrder(aDefinition({ cpuCores: 0.01 })));
    const limits = spawned
      .noteOf(id)
      .cgroups.flatMap((folder) =>
        ['cpu.max', 'cpu.cfs_quota_us']
          .map((name) => `${folder}/${name}`)
          .filter((path) => existsSync(path)),
      );
    if (limits.length === 0) skipBecause(this, 'no cgroup limits the processor here');

    expect(limits.map((path) => readFileSync(path, 'utf8').split(/\s/)[0])).to.deep.equal(['1000']);
    await ended(id);
  });

  it('contain a fork bomb', async function () {
    if (!spawned.driver.describe().isolation.startsWith('cgroup'))
      skipBecause(this, 'there are no cgroups here');
    const loud = await besideOf('bomb() { bomb | bomb & }; bomb 2>/dev/null; sleep 3');
    const folder =
      spawned.noteOf(loud).cgroups.find((path) => path.includes('pids')) ??
      spawned.noteOf(loud).cgroups[0] ??
      '';
    expect(Number(readFileSync(`${folder}/pids.max`, 'utf8'))).to.equal(64);
    await ended(loud);
  });

  it('contain a memory flood', async () => {
    const loud = await besideOf('head -c 1000000000 /dev/zero | tail -c 900000000 | wc -c');
    const outcome = await spawned.exec(loud, [
      'sh',
      '-c',
      'head -c 200000000 /dev/zero | tail; echo $?',
    ]);
    expect(String(outcome.stdout)).to.not.equal('0\n');
    const argv = ['sh', '-c', 'head -c 200000000 /dev/zero | tail'];
    const flood = { ...{ processId: 'flood', tenant: 'alpha', stdin: false }, argv };
    expect(await spawned.exec(loud, argv)).to.include({ exitCode: 137, outOfMemory: true });
    const terminal = await spawned.driver.attach(loud, { argv, cols: 80, rows: 24 });
    terminal.stream.resume();
    expect([await terminal.exit, terminal.outOfMemory]).to.deep.equal([137, true]);
    const { output } = await spawned.driver.processes.run(loud, flood, { pace: false });
    for await (const item of output(new AbortController().signal))
      if (item.kind === 'end') expect(item.fact).to.include({ signal: 'KILL', outOfMemory: true });
    await ended(loud);
  });

  it('end a main process out of memory, and report it', async function () {
    if (!spawned.driver.describe().isolation.startsWith('cgroup'))
      skipBecause(this, 'there are no cgroups here');
    const script = 'until [ -e /tmp/go ]; do sleep 0.05; done; exec tail /dev/zero';
    const argv = ['sh', '-c', script];
    const { id } = await spawned.launched(anOrder(aDefinition({ memoryBytes: 32 * MIB, argv })));
    await spawned.sh(id, 'touch /tmp/go');
    expect(await spawned.log.when(id, 'gone')).to.have.nested.include({
      'vitals.exitCode': 137,
      'vitals.outOfMemory': true,
    });
  });

  it('contain a flood of files in every writable folder', async () => {
    const loud = await besideOf(
      'while :; do head -c 30000000 /dev/zero > /tmp/a; rm /tmp/a; done 2>/dev/null',
    );
    // Until then it may hold all the room that there is, in a file without a name.
    await eventually(
      async () => !/^head$/m.test(await spawned.sh(loud, 'cat /proc/[0-9]*/comm')),
      'the last writer has ended',
    );
    for (const [folder, most] of [
      ['/tmp', 8],
      ['/var/tmp', 8],
      ['/run', 4],
      ['/dev/shm', 32],
      ['/home/sandbox', 16],
    ] as const) {
      const written = await spawned.sh(
        loud,
        `rm -f /tmp/a; dd if=/dev/zero of=${folder}/flood bs=1M count=60 2>/dev/null; stat -c %s ${folder}/flood; rm ${folder}/flood`,
      );
      expect(Number(written), folder).to.be.within(1, most * MIB);
    }
    await ended(loud);
  });

  it('prevent writes elsewhere', async () => {
    const { id } = await noisy();
    const places = await spawned.sh(
      id,
      `
      find / -path /proc -prune -o -path /dev/pts -prune -o ! -type l -writable -print 2>/dev/null
      for file in / /usr /etc /dev /.sandpool; do touch $file/made 2>/dev/null && echo made in $file; done
      for file in /proc/sys/kernel/core_pattern /proc/sys/vm/drop_caches; do (: >> $file) 2>/dev/null && echo $file; done`,
      { timeoutMs: NEVER_COMES_MS },
    );
    expect(places.trim().split('\n')).to.have.members([
      '/tmp',
      '/dev/shm',
      '/run',
      '/home/sandbox',
      '/dev/null',
      '/dev/zero',
      '/dev/full',
      '/dev/random',
      '/dev/urandom',
      '/dev/tty',
    ]);
    await ended(id);
  });

  it('hide other processes and the environment of others', async () => {
    const { id } = await spawned.launched(
      anOrder(aDefinition({ env: { SECRET_OF_ITS_OWN: 'x' } })),
    );
    const own = (await spawned.sh(id, 'env')).split('\n');
    const first = await spawned.sh(id, 'tr "\\0" "\\n" < /proc/1/environ');
    expect(own).to.include('SECRET_OF_ITS_OWN=x').and.to.include.members(first.split('\n'));
    const seen = await spawned.sh(id, 'cat /proc/[0-9]*/cmdline | tr "\\0" "\\n"');
    expect(seen).to.not.include('mocha');
    expect(seen).to.include('/.sandpool/launcher\ninit\n');
    await ended(id);
  });

  it('hide foreign descriptors from main process, command and terminal', async () => {
    const { id } = await noisy();
    expect(await spawned.sh(id, 'ls /proc/1/fd | tr "\\n" " "')).to.equal('0 1 2 ');
    expect(
      (await spawned.sh(id, 'ls -l /proc/self/fd')).match(/socket|pipe|pts|memfd/g)?.length ?? 0,
    ).to.be.at.most(4);
    await ended(id);
  });

  it('are the same for main process and command: uid, seccomp, capabilities, cgroup', async () => {
    const { id } = await noisy();
    const status = (pid: string): Promise<string> =>
      spawned.sh(id, `grep -E "^(Uid|Gid|Groups|NoNewPrivs|Seccomp|Cap...):" /proc/${pid}/status`);
    expect(await status('self')).to.equal(await status('1'));
    expect(await status('self'))
      .to.match(/NoNewPrivs:\s1/)
      .and.match(/Seccomp:\s2/)
      .and.match(/CapBnd:\s0{16}/);
    const { uid } = spawned.noteOf(id);
    const { init } = spawned.runningOf(id);
    expect(statSync(`/proc/${init.pid}`).uid).to.equal(uid);
    if (process.getuid?.() === 0) expect(uid).to.be.at.least(2_000_000_000);
    await ended(id);
  });

  it('deny network access unless the template asks for it', async () => {
    const off = await noisy();
    expect(
      await spawned.sh(off.id, 'cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d " \\n"'),
    ).to.equal('lo');
    const on = await spawned.launched(anOrder(aDefinition({}, { network: 'host' })));
    const interfaces = (await spawned.sh(on.id, 'tail -n +3 /proc/net/dev | cut -d: -f1'))
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean);
    expect(interfaces).to.deep.equal(
      readFileSync('/proc/net/dev', 'utf8')
        .split('\n')
        .slice(2)
        .map((line) => line.split(':')[0]?.trim())
        .filter(Boolean),
    );
    await ended(off.id);
    await ended(on.id);
  });

  it('let all its files be removed, even many, deep ones without permissions', async () => {
    const { id } = await spawned.launched(anOrder(aDefinition({ memoryBytes: 256 * MIB })));
    const made = await spawned.sh(
      id,
      `
      i=0; while [ $i -lt 3000 ]; do : > /tmp/contained-$i; i=$((i+1)); done
      d=/home/sandbox; i=0; while [ $i -lt 100 ]; do d=$d/d; mkdir $d; i=$((i+1)); done
      mkdir /tmp/contained && touch /tmp/contained/x && chmod 000 /tmp/contained; ls /tmp | wc -l`,
    );
    expect(Number(made)).to.equal(3_001);
    await ended(id);
    expect(readdirSync('/tmp').filter((name) => name.startsWith('contained'))).to.deep.equal([]);
  });

  it('let it continue if nobody reads its output', async () => {
    const { id } = await spawned.launched(
      anOrder(
        aDefinition({
          argv: [
            'sh',
            '-c',
            'head -c 20000000 /dev/zero; head -c 20000000 /dev/zero >&2; touch /tmp/written; sleep infinity',
          ],
        }),
      ),
    );
    const written = await spawned.exec(id, [
      'sh',
      '-c',
      'until [ -e /tmp/written ]; do sleep 0.05; done',
    ]);
    expect(written.exitCode).to.equal(0);
    await ended(id);
  });
});
