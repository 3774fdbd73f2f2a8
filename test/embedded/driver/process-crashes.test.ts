import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { v7 } from 'uuid';
import { ProcessesFull, ProcessGone, type ProcessOrder } from '../../../src/contracts/processes.ts';
import { InstanceGone, OutcomeUnknown } from '../../../src/contracts/sandbox-driver.ts';
import { SpawnerLink, type LinkEvents } from '../../../src/embedded/driver/spawner-link.ts';
import { readProcessStat } from '../../../src/embedded/spawner/sandbox/process-identity.ts';
import { systemClock } from '../../../src/embedded/system-clock.ts';
import type { EmbeddedSandboxDriver } from '../../../src/embedded/driver/sandbox-driver.ts';
import { LIVE_PROCESSES, type ProcessFact } from '../../../src/model/process.ts';
import { pathsOf } from '../../../src/embedded/spawner/protocol.ts';
import { buildLauncher, spawnerCommand } from '../../support/harness/a-spawned-driver.ts';
import { FactLog } from '../../support/harness/fact-log.ts';
import { aWatchedDriver, type WatchedDriver } from '../../support/harness/a-watched-driver.ts';
import { eventually } from '../../support/harness/eventually.ts';
import { OutputReading } from '../../support/harness/output-reading.ts';
import { quietLog } from '../../support/fakes/quiet-log.ts';
import { rejection } from '../../support/harness/rejection.ts';

const UNHEARD: LinkEvents = {
  fact: () => {},
  silent: () => {},
  back: () => {},
  givenUp: () => {},
  lost: () => {},
};

describe('processes in crashes', function () {
  let spawned: WatchedDriver;
  let id: string;
  /** An argument by which its processes are found on the machine. */
  let mark: string;

  before(() => buildLauncher());
  beforeEach(async () => {
    mark = String(10_000_000 + Math.floor(Math.random() * 80_000_000));
    spawned = await aWatchedDriver({ pidsMax: 512 });
    ({ id } = await spawned.launched());
  });
  afterEach(() => spawned.close());

  const start = (script: string, part: Partial<ProcessOrder> = {}): Promise<ProcessFact> =>
    spawned.driver.processes.start(id, { ...anOrderOf(script), ...part });
  const write = (
    { processId }: ProcessFact,
    text: string,
    { processes } = spawned.driver,
  ): Promise<void> =>
    processes.write(id, processId, {
      bytes: Buffer.from(text),
      signal: new AbortController().signal,
    });
  /** The spawner may be away. */
  const again = async <T>(call: () => Promise<T>): Promise<T> => {
    for (;;)
      try {
        return await call();
      } catch (error) {
        if (!(error instanceof OutcomeUnknown)) throw error;
      }
  };
  const read = ({ processId }: ProcessFact, from?: string): OutputReading => {
    const request = { pace: true, from };
    return new OutputReading((signal) =>
      spawned.driver.processes.output(id, processId, { ...request, signal }),
    );
  };
  const marked = (): number =>
    readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && commandLine(pid).includes(mark))
      .length;
  /** The holder of the one process whose argument is the mark. */
  const holder = (): number => {
    const pids = readdirSync('/proc').filter((pid) => /^\d+$/.test(pid));
    const isHolder = (pid: string): boolean => commandLine(pid).split('\0')[1] === 'hold';
    const found = pids.find(
      (pid) =>
        commandLine(pid).includes(mark) && isHolder(String(readProcessStat(Number(pid))?.parent)),
    );
    return readProcessStat(Number(found))?.parent ?? 0;
  };
  const killHolder = (): void => {
    const pid = holder();
    expect(pid).to.be.above(1);
    process.kill(pid, 'SIGKILL');
  };
  const sockets = (): readonly string[] => {
    const folder = join(pathsOf(spawned.dataDir).holders, id);
    return existsSync(folder) ? readdirSync(folder) : [];
  };
  const killSpawner = async (): Promise<void> => {
    const pid = spawned.spawnerPid();
    process.kill(pid, 'SIGKILL');
    await eventually(() => (readProcessStat(pid)?.state ?? 'Z') === 'Z', 'the spawner is dead');
  };

  /** The next daemon on the data folder; a spawner that it starts has these options of Node. */
  const next = async (
    nodeOptions: readonly string[] = [],
  ): Promise<{ readonly driver: EmbeddedSandboxDriver; readonly log: FactLog }> => {
    const [node = '', ...rest] = spawnerCommand();
    const driver = spawned.again({ spawnerEntry: { command: [node, ...nodeOptions, ...rest] } });
    const log = new FactLog();
    await driver.watch(log.report);
    return { driver, log };
  };

  it('survive the death of the daemon, and are found again with their output', async () => {
    const link = new SpawnerLink(await spawned.connect(), {
      clock: systemClock(),
      log: quietLog,
      events: UNHEARD,
    });
    const fact = await start('echo before; read go; echo after');
    const first = read(fact);
    await first.until('before\n');
    // This takes the spawner over; then the driver comes back, as another daemon would.
    await link.greet(spawned.config);
    const found = await spawned.driver.processes.find(id, fact.processId);
    const third = read(fact, first.positions().at(-1));
    await write(fact, '\n');

    expect(found).to.deep.equal(fact);
    expect((await first.end()).exitCode).to.equal(0);
    await third.end();
    const texts = [first, third].map((reading) => reading.text('stdout'));
    expect(texts).to.deep.equal(['before\nafter\n', 'after\n']);
  });

  it('survive a stop of the daemon, and the next one resumes reading at the same position', async () => {
    const fact = await start('echo before; read go; echo after; exit 3');
    const first = read(fact);
    await first.until('before\n');
    await first.leave();
    await spawned.driver.stop();
    await eventually(() => spawned.spawnerPid() === 0, 'the spawner has ended');

    const { driver } = await next();
    await write(fact, '\n', driver);
    const from = first.positions().at(-1) ?? '';
    const second = new OutputReading((call) =>
      driver.processes.output(id, fact.processId, { pace: true, from, signal: call }),
    );
    const end = await second.end();

    expect([second.text('stdout'), end.exitCode]).to.deep.equal(['after\n', 3]);
  });

  it('survive a kill of the spawner, with readable output and writable input throughout', async () => {
    const fact = await start(`echo before; read go; echo "$go"; sleep ${mark} & wait`);
    const reading = read(fact);
    await reading.until('before\n');
    await killSpawner();
    await write(fact, 'went\n');
    await reading.until('went\n');
    await eventually(() => spawned.spawnerPid() !== 0, 'another spawner is there');

    expect((await spawned.driver.processes.list(id)).map(({ pid }) => pid)).to.deep.equal([
      fact.pid,
    ]);
    await spawned.driver.processes.remove(id, fact.processId);
    expect((await reading.end()).signal).to.equal('KILL');
    await eventually(() => marked() === 0, 'nothing of it runs');
    expect(spawned.log.of(id).some(({ programsEnded }) => programsEnded !== undefined)).to.equal(
      false,
    );
  });

  it('keep their terminal through a kill of the spawner', async () => {
    const fact = await start('stty size; read line; echo "<$line>"; stty size', {
      tty: { cols: 80, rows: 24 },
    });
    const reading = read(fact);
    await reading.until('24 80\r\n');
    await killSpawner();
    await spawned.driver.processes.resize(id, fact.processId, { cols: 91, rows: 31 });
    await write(fact, 'typed\n');

    expect((await reading.end()).exitCode).to.equal(0);
    expect(reading.text('stdout')).to.contain('<typed>\r\n31 91\r\n');
  });

  it('survive a kill of daemon and spawner, a hundred in two sandboxes', async () => {
    const other = (await spawned.launched()).id;
    const jobs = Array.from({ length: 100 }, (_, n) => ({
      sandbox: n % 2 === 0 ? id : other,
      order: anOrderOf(`sleep ${mark} & echo ${n}; wait`),
    }));
    await Promise.all(
      jobs.map(({ sandbox, order }) => spawned.driver.processes.start(sandbox, order)),
    );
    // A shell and what it started, each.
    await eventually(() => marked() === 200, 'all of them run');
    await killSpawner();
    await spawned.driver.stop();
    const { driver } = await next();

    const known = await Promise.all([id, other].map((each) => driver.processes.list(each)));
    expect(known.map((facts) => facts.filter(({ status }) => status === 'Running').length))
      .to //
      .deep.equal([50, 50]);
    expect(marked()).to.equal(200);
    const first = jobs[98];
    const reading = new OutputReading((signal) =>
      driver.processes.output(id, first?.order.processId ?? '', { pace: false, signal }),
    );
    await reading.until('98\n');
    await reading.leave();
  });

  it('count towards the limit of the next spawner', async () => {
    await Promise.all(Array.from({ length: LIVE_PROCESSES }, () => start('exec sleep 1000')));
    await killSpawner();
    const refused = await rejection(again(() => start('true')));
    expect(refused).to.be.instanceOf(ProcessesFull).and.include({ of: 'sandbox' });
  });

  it('end with their holder, with an event, and leave no socket', async () => {
    const fact = await start(`sleep ${mark} & wait`);
    const reading = read(fact);
    killHolder();
    const told = (): readonly (string | undefined)[] =>
      spawned.log.of(id).flatMap(({ programsEnded }) => programsEnded ?? []);
    await eventually(() => told().length > 0, 'the event is there');
    const [first] = spawned.log.of(id).filter(({ programsEnded }) => programsEnded !== undefined);
    expect(first?.vitals.kind).to.equal('available');
    expect(await rejection(reading.end())).to.be.instanceOf(ProcessGone);
    await eventually(() => sockets().length === 0, 'its socket is gone');
    expect(await spawned.driver.processes.list(id)).to.deep.equal([]);
    expect(told()).to.deep.equal(['the process that held one of them was killed']);
  });

  it('are reported as ended by the next spawner if holder and spawner were killed', async () => {
    await start(`exec sleep ${mark}`);
    const spawner = spawned.spawnerPid();
    process.kill(spawner, 'SIGSTOP');
    killHolder();
    process.kill(spawner, 'SIGKILL');
    await eventually(
      () => spawned.log.of(id).some(({ programsEnded }) => programsEnded !== undefined),
      'the event is there',
    );
    expect(sockets()).to.deep.equal([]);
  });

  it('end with a sandbox that is killed without a spawner, and leave no socket', async () => {
    await start(`sleep ${mark} & wait`);
    await spawned.driver.stop();
    const { init } = spawned.runningOf(id);
    process.kill(init.pid, 'SIGKILL');
    await eventually(() => marked() === 0, 'nothing of it runs');
    await eventually(() => sockets().length === 0, 'its holder has ended');

    await next();
    expect(readdirSync(pathsOf(spawned.dataDir).holders)).to.deep.equal([]);
  });

  it('have a holder hidden from their sandbox, and outside of its cgroup', async () => {
    await start(`exec sleep ${mark}`);
    const seen = await spawned.sh(id, 'cat /proc/[0-9]*/cmdline; ls /proc/1/root/var/lib 2>&1');
    expect(seen).to.not.contain('hold');
    const { cgroups } = spawned.noteOf(id);
    const own = readFileSync(`/proc/${holder()}/cgroup`, 'utf8').split('\n');
    for (const line of own)
      for (const cgroup of cgroups)
        expect(cgroup.endsWith(line.split(':')[2] ?? '-') && line !== '').to.equal(false);
  });

  it('leave no orphan if the spawner is killed while they start', async () => {
    const starts = Array.from({ length: 24 }, () =>
      start(`sleep ${mark} & wait`).then(
        () => undefined,
        (error: unknown) => error,
      ),
    );
    await Promise.race(starts);
    await killSpawner();
    const failures = (await Promise.all(starts)).filter((error) => error !== undefined);

    for (const error of failures) expect(error).to.be.instanceOf(OutcomeUnknown);
    const { processes } = spawned.driver;
    // Ordered ones run on; the next spawner starts those that waited for their turn.
    await eventually(async () => {
      const known = await processes.list(id).catch(() => []);
      for (const { processId } of known) await processes.remove(id, processId);
      return marked() === 0 && sockets().length === 0;
    }, 'nothing runs of which nobody knows');
  });

  it('end and disappear with their sandbox', async () => {
    const fact = await start(`sleep ${mark} & wait`);
    const reading = read(fact);
    const { init } = spawned.runningOf(id);
    process.kill(init.pid, 'SIGKILL');
    const end = await reading.end().catch((error: unknown) => error);

    expect(end instanceof Error ? end.name : end).to.satisfy(
      (seen: unknown) => seen === 'ProcessGone' || (seen as ProcessFact).exitCode === 137,
    );
    await eventually(() => marked() === 0, 'nothing of it runs');
    await eventually(
      () =>
        spawned.driver.processes.list(id).then(
          () => false,
          (error: unknown) => error instanceof InstanceGone,
        ),
      'the sandbox is gone',
    );
  });
});

const anOrderOf = (script: string): ProcessOrder => ({
  processId: v7(),
  tenant: 'team/user',
  argv: ['/bin/sh', '-c', script],
  stdin: true,
});

const commandLine = (pid: string): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
};
