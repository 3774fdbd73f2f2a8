import { expect } from 'chai';
import { existsSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { LogRequest } from '../../../src/contracts/sandbox-driver.ts';
import type { EmbeddedSandboxDriver } from '../../../src/embedded/driver/sandbox-driver.ts';
import { isAlive } from '../../../src/embedded/spawner/sandbox/process-identity.ts';
import { pathsOf } from '../../../src/embedded/spawner/protocol.ts';
import { aWatchedDriver, type WatchedDriver } from '../../support/harness/a-watched-driver.ts';
import { eventually } from '../../support/harness/eventually.ts';
import { FactLog } from '../../support/harness/fact-log.ts';
import { aClaim, aDefinition, anOrder, permitted } from '../../support/builders/instance-orders.ts';
import { skipBecause } from '../../support/harness/skip-because.ts';

const COUNTING = 'n=0; while :; do n=$((n+1)); echo "count $n"; sleep 0.02; done';

describe('output of sandboxes', function () {
  let world: WatchedDriver;
  let driver: EmbeddedSandboxDriver;

  beforeEach(async () => {
    world = await aWatchedDriver();
    driver = world.driver;
  });
  afterEach(() => world.close());

  const printing = async (
    script: string,
    part: Partial<Parameters<typeof aDefinition>[0]> = {},
  ): Promise<string> =>
    (await world.launched(anOrder(aDefinition({ argv: ['sh', '-c', script], ...part })))).id;
  const linesOf = async (
    id: string,
    part: Partial<LogRequest> = {},
    from = driver,
  ): Promise<readonly string[]> =>
    (await from.logs(id, { tailLines: 10_000, limitBytes: 1 << 20, ...part })).lines.map(
      ({ text }) => String(text),
    );
  const shows = (id: string, line: string): Promise<void> =>
    eventually(async () => (await linesOf(id)).includes(line), `${line} is in the log`);
  const lastCount = async (id: string, from = driver): Promise<number> =>
    Number((await linesOf(id, { tailLines: 1 }, from))[0]?.split(' ')[1] ?? 0);
  const countsOn = async (id: string, from = driver): Promise<void> => {
    const before = await lastCount(id, from);
    await eventually(async () => (await lastCount(id, from)) > before + 5, 'it goes on');
  };
  const logsFolder = (): string => pathsOf(world.dataDir).logs;

  it('is stored in the order of writing, both streams alike', async () => {
    const id = await printing(
      'echo one; echo two >&2; echo three; printf "ä\\nhalf"; sleep infinity',
    );
    await shows(id, 'half');
    expect(await linesOf(id)).to.deep.equal(['one', 'two', 'three', 'ä', 'half']);
  });

  it('can be written through /dev/stdout and /dev/stderr too', async () => {
    const id = await printing(
      'echo out >/dev/stdout; echo err >/dev/stderr; echo more >>/proc/self/fd/1; sleep infinity',
    );
    await shows(id, 'more');
    expect(await linesOf(id)).to.deep.equal(['out', 'err', 'more']);
  });

  it('is complete for lines of any length', async () => {
    const id = await printing(
      'head -c 100000 /dev/zero | tr "\\0" x; echo; echo end; sleep infinity',
    );
    await shows(id, 'end');
    expect(await linesOf(id)).to.deep.equal(['x'.repeat(100_000), 'end']);
  });

  it('is returned from its end, up to the requested size', async () => {
    const id = await printing('seq 1 20000; sleep infinity');
    await shows(id, '20000');
    const last = await driver.logs(id, { tailLines: 3, limitBytes: 1 << 20 });
    expect(last.lines.map(({ text }) => String(text))).to.deep.equal(['19998', '19999', '20000']);
    expect(last.truncated).to.equal(true);
    expect((await linesOf(id, { tailLines: 10_000 })).length).to.equal(10_000);
    expect(await linesOf(id, { limitBytes: 12 })).to.deep.equal(['19999', '20000']);
    const since = Date.parse(last.lines[2]?.time ?? '') + 1;
    expect(await driver.logs(id, { tailLines: 10, limitBytes: 100, since })).to.deep.include({
      lines: [],
      truncated: false,
    });
    expect((await linesOf(id, { since: since - 60_000 })).length).to.equal(10_000);
  });

  it('continues after a kill of the log pump, without a lost line outside its buffer', async () => {
    const id = await printing(COUNTING);
    await countsOn(id);

    process.kill(pumpPid(), 'SIGKILL');
    await countsOn(id);

    const counts = (await linesOf(id)).map((line) => Number(line.split(' ')[1]));
    // A line may be in its hands, seldom: it is killed while it reads, writes, or waits.
    const jumps = counts.map((n, at) => n - (counts[at - 1] ?? 0)).filter((jump) => jump !== 1);
    expect(jumps, 'lines lost').to.have.length.at.most(1);
    expect(jumps[0] ?? 2).to.be.within(2, 4);
    expect(world.log.kinds(id)).to.deep.equal(['starting', 'available']);
  });

  it('continues after a kill of the spawner', async () => {
    const id = await printing(COUNTING);
    await countsOn(id);
    const pump = pumpPid();
    process.kill(world.spawnerPid(), 'SIGKILL');
    await countsOn(id);
    await eventually(() => driver.describe().problems.length === 0, 'another spawner is there');
    await countsOn(id);
    expect(pumpPid(), 'the same keeps it').to.equal(pump);
  });

  it('continues after a kill of daemon, spawner and pump, during which the sandbox only waits', async () => {
    const id = await printing(`trap '' PIPE; ${COUNTING}`);
    const silent = await printing('while :; do echo "a line that fills it"; done');
    await countsOn(id);
    await driver.stop();
    process.kill(pumpPid(), 'SIGKILL');
    await eventually(() => pumpPid() === 0, 'nobody keeps it');
    const before = await lastCount(id);

    const next = world.again();
    const facts = new FactLog();
    await next.watch(facts.report);
    await countsOn(id, next);

    expect(await lastCount(id, next)).to.be.greaterThan(before);
    expect([id, silent].map((each) => facts.kinds(each))).to.deep.equal([
      ['available'],
      ['available'],
    ]);
    expect([id, silent].every((each) => isAlive(world.runningOf(each).init))).to.equal(true);
  });

  it('follows new limits from the next start on', async () => {
    const id = await printing(COUNTING);
    await countsOn(id);
    const before = pumpPid();
    await driver.stop();
    const next = world.again({
      logs: { fileBytes: 65_536, totalBytes: 1 << 28, retentionMs: 3_600_000 },
    });
    await next.watch(() => undefined);
    await eventually(() => pumpPid() !== 0 && pumpPid() !== before, 'another keeps it');
    expect(readFileSync(`/proc/${pumpPid()}/cmdline`, 'utf8').split('\0')[3]).to.equal('65536');
    await countsOn(id, next);
  });

  it('stays readable after the end of the sandbox and after a restart', async () => {
    const record = await world.launched(
      anOrder(aDefinition({ argv: ['sh', '-c', 'echo first; sleep infinity'] })),
    );
    await shows(record.id, 'first');
    await driver.claim(record, aClaim());
    await driver.release(record.id, { reason: 'deleted', exitCode: null });
    await world.log.when(record.id, 'gone');
    expect(await linesOf(record.id)).to.deep.equal(['first']);
    await driver.stop();
    expect(await linesOf(record.id, {}, world.again())).to.deep.equal(['first']);
    await eventually(() => !existsSync(join(logsFolder(), 'pipes', record.id)), 'its fifo is gone');
  });

  it('shows why bubblewrap failed', async () => {
    const order = anOrder(aDefinition({ workingDir: '/usr/no/such' }));
    await driver.launch(order, permitted);
    await world.log.when(order.record.id, 'gone');
    await eventually(async () => (await linesOf(order.record.id)).length > 0, 'it says so');
    expect((await linesOf(order.record.id)).join()).to.include('bwrap:');
  });

  it('is kept for a sandbox that ends at once, even if its log is opened late', async () => {
    await eventually(() => pumpPid() > 0, 'something keeps logs');
    const pump = pumpPid();
    const order = anOrder(aDefinition({ workingDir: '/usr/no/such' }));
    const { id } = order.record;
    process.kill(pump, 'SIGSTOP');
    let launching: Promise<unknown>;
    try {
      launching = driver.launch(order, permitted);
      const gone = world.log.when(id, 'gone').then(() => true);
      const fifo = join(logsFolder(), 'pipes', id);
      let holder: string | undefined;
      let looks = 0;
      await eventually(async () => {
        // of all processes once alone: it is held back for 5 s, and a busy machine has many
        if (holder === undefined || !holdsBack(holder, fifo))
          [holder, looks] = [readdirSync('/proc').find((pid) => holdsBack(pid, fifo)), 0];
        else looks += 1;
        return looks > 10 || (await Promise.race([gone, Promise.resolve(false)]));
      }, 'it is held back, or has ended');
    } finally {
      process.kill(pump, 'SIGCONT');
    }
    await launching;
    await world.log.when(id, 'gone');
    await eventually(async () => (await linesOf(id)).length > 0, 'it says so');
  });

  it('takes at most two files during a flood, and does not delay neighbours', async () => {
    const flood = await printing('yes "a flood of words"');
    const neighbour = await printing('while :; do date +%s%N; sleep 0.05; done');
    await eventually(
      async () => (await linesOf(flood)).some((line) => line.startsWith('[sandpool: ')),
      'some of it is dropped',
    );
    const from = Date.now();
    await eventually(
      async () => Number((await linesOf(neighbour, { tailLines: 1 }))[0] ?? 0) / 1e6 > from,
      'what the neighbour prints from now on is in its log',
    );
    const files = readdirSync(join(logsFolder(), flood)).filter((name) => name !== 'of');
    expect(files.length).to.be.at.most(2);
    for (const file of files)
      expect(
        // one that has been replaced since it was listed has no size
        statSync(join(logsFolder(), flood, file), { throwIfNoEntry: false })?.size ?? 0,
      ).to.be.at.most(1 << 20);
  });

  it('is followed as it arrives, to its end', async () => {
    const id = await printing(
      'for n in 1 2 3 4 5; do echo "line $n"; sleep 0.05; done; until [ -e /tmp/end ]; do sleep 0.05; done; printf last',
    );
    const lines: string[] = [];
    for await (const batch of driver.followLogs(id, { after: '0' }, new AbortController().signal)) {
      lines.push(...batch.lines.map(({ text }) => String(text)));
      if (lines.at(-1) === 'line 5') await world.sh(id, 'touch /tmp/end');
    }
    expect(lines).to.deep.equal(['line 1', 'line 2', 'line 3', 'line 4', 'line 5', 'last']);
  });

  it('shows a follower that lines were dropped', async () => {
    await world.close();
    world = await aWatchedDriver({
      logs: { fileBytes: 65_536, totalBytes: 1 << 28, retentionMs: 3_600_000 },
    });
    driver = world.driver;
    const id = await printing('seq 1 10000; echo end; sleep infinity');
    await shows(id, 'end');
    const controller = new AbortController();
    const batches: { first: string; skipped: boolean }[] = [];
    for await (const { lines, skipped } of driver.followLogs(
      id,
      { after: '0' },
      controller.signal,
    )) {
      batches.push({ first: String(lines[0]?.text), skipped });
      if (String(lines.at(-1)?.text) === 'end') controller.abort();
    }
    expect(batches[0]).to.deep.equal({ first: 'undefined', skipped: true });
    expect(batches.slice(1).some(({ skipped }) => skipped)).to.equal(false);
  });

  it('is write-only for the sandbox', async function () {
    if (process.getuid?.() !== 0)
      skipBecause(this, "without root the sandbox has the daemon's own uid");
    const id = await printing('echo here; sleep infinity');
    await shows(id, 'here');
    const tries = await world.sh(
      id,
      'P=/proc/1/fd/1; chmod 777 $P 2>/dev/null && echo changed; timeout 1 cat <$P 2>/dev/null && echo read; ln $P /tmp/x 2>/dev/null && echo linked; ls /proc/1/fd/1 >/dev/null && echo seen',
    );
    expect(tries).to.not.include('changed').and.not.include('read').and.not.include('linked');
  });

  it('is kept without isolation, too', async () => {
    await world.close();
    world = await aWatchedDriver({ isolation: 'none' });
    driver = world.driver;
    const id = await printing('echo bare; echo bad >&2; sleep infinity');
    await shows(id, 'bad');
    expect(await linesOf(id)).to.deep.equal(['bare', 'bad']);
  });

  it('is kept by one process that ends with the last sandbox', async () => {
    const { id, revision } = await world.launched();
    expect(pumpPid()).to.be.greaterThan(0);
    await driver.retire(id, revision);
    await world.log.when(id, 'gone');
    await driver.stop();
    await eventually(() => pumpPid() === 0, 'it is gone');
  });

  /** A launcher has the fifo open, and is no bubblewrap yet. */
  const holdsBack = (pid: string, fifo: string): boolean => {
    try {
      const open = readdirSync(`/proc/${pid}/fd`).map((fd) =>
        readlinkSync(`/proc/${pid}/fd/${fd}`),
      );
      return open.includes(fifo) && !readlinkSync(`/proc/${pid}/exe`).includes('bwrap');
    } catch {
      return false;
    }
  };

  /** Of this data folder; 0 without one. */
  const pumpPid = (): number =>
    Number(
      readdirSync('/proc')
        .filter((name) => /^\d+$/.test(name))
        .find((pid) => {
          try {
            const [, mode, folder] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
            return mode === 'logs' && folder === logsFolder();
          } catch {
            return false;
          }
        }) ?? 0,
    );
});
