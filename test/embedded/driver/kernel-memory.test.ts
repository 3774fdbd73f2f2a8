import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { buildLauncher } from '../../support/harness/a-spawned-driver.ts';
import { aWatchedDriver, type WatchedDriver } from '../../support/harness/a-watched-driver.ts';
import { aDefinition, anOrder } from '../../support/builders/instance-orders.ts';
import { skipBecause } from '../../support/harness/skip-because.ts';

const MIB = 2 ** 20;
/**
 * Connects to itself 64 times, and each time sends what the kernel takes without anybody reading
 * it; prints how many bytes that were.
 */
const HOARD = `
use IO::Socket::INET; use Errno qw(EAGAIN);
my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 128, Proto => 'tcp') or die;
my ($held, @kept) = (0);
for (1..64) {
  my $out = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $listener->sockport, Proto => 'tcp') or last;
  push @kept, $out, $listener->accept;
  $out->blocking(0);
  while (defined(my $sent = syswrite($out, "x" x 65536))) { $held += $sent }
}
print $held;`;

/** The same with datagrams to 3,000 sockets, with pairs of Unix sockets, and with pipes. */
const OTHER_HOARDS = {
  datagrams: `use Socket; my @kept;
for (1..3000) {
  socket(my $in, PF_INET, SOCK_DGRAM, 17) or last;
  bind($in, sockaddr_in(0, INADDR_LOOPBACK)) or last;
  socket(my $out, PF_INET, SOCK_DGRAM, 17) or last;
  push @kept, $in;
  for (1..20) { defined(send($out, "x" x 8000, 0x40, getsockname($in))) or last }
}`,
  'Unix sockets': `use Socket; use IO::Handle; my @kept;
for (1..1900) { socketpair(my $out, my $in, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or last; push @kept, $out, $in; $out->blocking(0); 1 while defined syswrite($out, "x" x 32768) }`,
  pipes: `use IO::Handle; my @kept;
for (1..1900) { pipe(my $in, my $out) or last; push @kept, $in, $out; $out->blocking(0); 1 while defined syswrite($out, "x" x 4096) }`,
} as const;

describe('kernel memory of a sandbox', function () {
  let spawned: WatchedDriver;

  before(async () => {
    buildLauncher();
    spawned = await aWatchedDriver();
  });
  after(() => spawned.close());

  it('for sockets stays within its limit', async function () {
    const { isolation } = spawned.driver.describe();
    if (!isolation.startsWith('cgroup')) skipBecause(this, 'there are no cgroups here');
    const memoryBytes = 128 * MIB;
    const { id } = await spawned.launched(anOrder(aDefinition({ memoryBytes })));
    const { exitCode, stdout, stderr } = await spawned.exec(id, ['perl', '-e', HOARD], {
      timeoutMs: 30_000,
    });
    expect({ exitCode, stderr: String(stderr) }).to.deep.equal({ exitCode: 0, stderr: '' });
    expect(Number(String(stdout))).to.be.within(
      MIB,
      isolation === 'cgroup-v1' ? memoryBytes / 4 : memoryBytes,
    );
  });

  for (const [what, script] of Object.entries(OTHER_HOARDS)) {
    it(`for ${what} stays within its limit, and within an eighth of it if sockets count separately`, async function () {
      if (!spawned.driver.describe().isolation.startsWith('cgroup'))
        skipBecause(this, 'there are no cgroups here');
      const memoryBytes = 128 * MIB;
      const { id } = await spawned.launched(anOrder(aDefinition({ memoryBytes })));
      await spawned.exec(id, ['perl', '-e', script], { timeoutMs: 30_000 });
      const most = (...names: readonly string[]): number =>
        spawned
          .noteOf(id)
          .cgroups.flatMap((folder) => names.map((name) => join(folder, name)))
          .filter((path) => existsSync(path))
          .map((path) => Number(readFileSync(path, 'utf8')))
          .reduce((sum, bytes) => sum + bytes, 0);
      expect(
        most('memory.max_usage_in_bytes', 'memory.peak', 'memory.kmem.tcp.max_usage_in_bytes'),
      ).to.be.within(8 * MIB, (memoryBytes * 9) / 8);
    });
  }

  it('for files is bounded by their number in every writable folder, with ENOSPC beyond', async function () {
    if (process.getuid?.() !== 0) skipBecause(this, 'mounting needs root');
    const { id } = await spawned.launched(anOrder(aDefinition({ memoryBytes: 64 * MIB })));
    const script =
      'cd "$0" && exec perl -e \'my $n = 0; while ($n < 200_000) { mkdir("d-$n") or last; $n++ } print "$n $!"\'';
    for (const [folder, most] of [
      ['/tmp', 4_096],
      ['/run', 2_048],
      ['/dev/shm', 16_384],
      ['/home/sandbox', 8_192],
    ] as const) {
      const { stdout } = await spawned.exec(id, ['sh', '-c', script, folder], {
        timeoutMs: 30_000,
      });
      const [, made, why] = /^(\d+) (.*)$/.exec(String(stdout)) ?? [];
      expect({ folder, why }).to.deep.equal({ folder, why: 'No space left on device' });
      expect(Number(made), folder).to.be.within(most / 2, most);
      await spawned.exec(id, ['find', folder, '-mindepth', '1', '-delete'], { timeoutMs: 30_000 });
    }
  });

  it('for empty files counts as its memory by what each costs', async function () {
    if (!spawned.driver.describe().isolation.startsWith('cgroup'))
      skipBecause(this, 'there are no cgroups here');
    const { id } = await spawned.launched(anOrder(aDefinition({ memoryBytes: 64 * MIB })));
    const charged = (): number =>
      Math.max(
        ...spawned
          .noteOf(id)
          .cgroups.flatMap((folder) =>
            ['memory.usage_in_bytes', 'memory.current'].map((name) => join(folder, name)),
          )
          .filter((path) => existsSync(path))
          .map((path) => Number(readFileSync(path, 'utf8'))),
      );
    const before = charged();
    await spawned.sh(
      id,
      'cd /tmp; perl -e \'for (1..3_000) { open(my $file, ">", "empty-$_") or die $! }\'',
    );
    expect(charged() - before).to.be.greaterThan(3_000 * 512);
  });
});

/**
 * What container runtimes mask, and what they make read-only: the OCI defaults of containerd and
 * Docker, below /proc.
 */
const MASKED = [
  'acpi',
  'asound',
  'interrupts',
  'kcore',
  'keys',
  'latency_stats',
  'timer_list',
  'timer_stats',
  'sched_debug',
  'scsi',
];
const READ_ONLY = ['bus', 'fs', 'irq', 'sys', 'sysrq-trigger'];

describe('/proc in a sandbox', function () {
  let spawned: WatchedDriver;
  let id: string;

  before(async () => {
    buildLauncher();
    spawned = await aWatchedDriver();
    ({ id } = await spawned.launched());
  });
  after(() => spawned.close());

  for (const name of MASKED) {
    it(`hides /proc/${name}`, async function () {
      if (!existsSync(`/proc/${name}`)) skipBecause(this, 'this kernel has none');
      expect(
        await spawned.sh(
          id,
          `[ ! -d /proc/${name} ] || ls -A /proc/${name}; [ -d /proc/${name} ] || cat /proc/${name}; echo read`,
        ),
      ).to.equal('read\n');
    });
  }

  for (const name of READ_ONLY) {
    it(`has a read-only /proc/${name}`, async function () {
      if (!existsSync(`/proc/${name}`)) skipBecause(this, 'this kernel has none');
      expect(
        await spawned.sh(
          id,
          `while read -r _ _ _ _ place options _; do [ "$place" = /proc/${name} ] && echo "$options"; done < /proc/self/mountinfo`,
        ),
      ).to.match(/^ro,nosuid,nodev/);
    });
  }

  it("is otherwise the sandbox's own", async () => {
    expect(
      await spawned.sh(
        id,
        'cat /proc/1/comm; cat /proc/sys/kernel/hostname; head -c 5 /proc/meminfo; ls /proc/self/fd >/dev/null && echo; cat /proc/sys/net/core/somaxconn',
      ),
    ).to.match(/^\w.*\nsandbox\nMemTo\n\d+\n$/);
    expect(readdirSync('/proc').length).to.be.greaterThan(
      Number(await spawned.sh(id, 'ls /proc | grep -c "^[0-9]"')),
    );
  });
});
