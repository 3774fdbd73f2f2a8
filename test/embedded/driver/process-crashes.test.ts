import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { v7 } from 'uuid';
import { ProcessGone } from '../../../src/contracts/processes.ts';
import { InstanceGone, OutcomeUnknown } from '../../../src/contracts/sandbox-driver.ts';
import { SpawnerLink, type LinkEvents } from '../../../src/embedded/driver/spawner-link.ts';
import { readProcessStat } from '../../../src/embedded/spawner/sandbox/process-identity.ts';
import { systemClock } from '../../../src/embedded/system-clock.ts';
import type { EmbeddedSandboxDriver } from '../../../src/embedded/driver/sandbox-driver.ts';
import type { ProcessFact } from '../../../src/model/process.ts';
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

  const start = (script: string): Promise<ProcessFact> =>
    spawned.driver.processes.start(id, {
      processId: v7(),
      tenant: 'team/user',
      argv: ['/bin/sh', '-c', script],
      stdin: true,
    });
  const read = ({ processId }: ProcessFact, from?: string): OutputReading => {
    const request = { pace: true, from };
    return new OutputReading((signal) =>
      spawned.driver.processes.output(id, processId, { ...request, signal }),
    );
  };
  const marked = (): number =>
    readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && commandLine(pid).includes(mark))
      .length;
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
    expect(await rejection(first.end())).to.be.instanceOf(OutcomeUnknown);

    const found = await spawned.driver.processes.find(id, fact.processId);
    const [second, third] = [read(fact), read(fact, first.positions().at(-1))];
    const { signal } = new AbortController();
    await spawned.driver.processes.write(id, fact.processId, { bytes: Buffer.from('\n'), signal });

    expect(found).to.deep.equal(fact);
    expect((await second.end()).exitCode).to.equal(0);
    await third.end();
    const texts = [second, third].map((reading) => reading.text('stdout'));
    expect(texts).to.deep.equal(['before\nafter\n', 'after\n']);
  });

  it('survive a stop of the daemon, and the next one resumes reading at the same position', async () => {
    const fact = await start('echo before; read go; echo after; exit 3');
    const first = read(fact);
    await first.until('before\n');
    const spawner = spawned.spawnerPid();
    const left = rejection(first.end());
    await spawned.driver.stop();
    expect(await left).to.be.instanceOf(OutcomeUnknown);

    const { driver } = await next();
    const { signal } = new AbortController();
    await driver.processes.write(id, fact.processId, { bytes: Buffer.from('\n'), signal });
    const from = first.positions().at(-1) ?? '';
    const second = new OutputReading((call) =>
      driver.processes.output(id, fact.processId, { pace: true, from, signal: call }),
    );
    const end = await second.end();

    expect([second.text('stdout'), end.exitCode]).to.deep.equal(['after\n', 3]);
    expect(spawned.spawnerPid()).to.equal(spawner);
  });

  it('keep the spawner alive until the last has ended', async () => {
    const fact = await start(`sleep ${mark}`);
    await spawned.driver.stop();
    const { driver } = await next();
    await driver.processes.signal(id, fact.processId, 'KILL');
    await eventually(
      async () => (await driver.processes.find(id, fact.processId))?.status === 'Exited',
      'it has ended',
    );
    await driver.stop();
    await eventually(() => spawned.spawnerPid() === 0, 'the spawner has ended');
    await next();
  });

  it('are reported by an event if their spawner was killed', async () => {
    await start(`sleep ${mark}`);
    await killSpawner();
    const told = (): readonly (string | undefined)[] =>
      spawned.log.of(id).flatMap(({ programsEnded }) => programsEnded ?? []);
    await eventually(() => told().length > 0, 'it is told');
    const [first] = spawned.log.of(id).filter(({ programsEnded }) => programsEnded !== undefined);
    expect(first?.vitals.kind).to.equal('available');

    const killed = spawned.spawnerPid();
    await killSpawner();
    await eventually(() => ![0, killed].includes(spawned.spawnerPid()), 'another is there');
    await eventually(
      async () => (await spawned.driver.processes.list(id).catch(() => undefined))?.length === 0,
      'it has none',
    );
    expect(told()).to.deep.equal(['the process that ran them was killed']);
  });

  it('end with a killed spawner during a read, with an error for the readers', async () => {
    const fact = await start(`while :; do echo ${mark}; sleep 0.01; done`);
    const reading = read(fact);
    await reading.pauseAfter(3);
    reading.goOn();
    await killSpawner();

    expect(await rejection(reading.end())).to.be.instanceOf(OutcomeUnknown);
    await eventually(() => marked() === 0, 'nothing of it runs');
    await eventually(async () => {
      const known = await spawned.driver.processes.list(id).catch(() => undefined);
      return known?.length === 0;
    }, 'another spawner has none');
    expect(
      await rejection(spawned.driver.processes.signal(id, fact.processId, 'TERM')),
    ).to.be.instanceOf(ProcessGone);
    expect((await read(await start('echo works')).end()).exitCode).to.equal(0);
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
    // Those that waited for their turn run by another spawner.
    await eventually(async () => {
      const known = await processes.list(id).catch(() => []);
      for (const { processId } of known) await processes.remove(id, processId);
      return marked() === 0;
    }, 'nothing runs of which no spawner knows');
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

const commandLine = (pid: string): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
};
