import { spawn } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { v7 } from 'uuid';
import { Launch } from '../../../src/embedded/spawner/sandbox/launch.ts';
import { Notes } from '../../../src/embedded/spawner/sandbox/notes.ts';
import {
  isAlive,
  readBootId,
  readProcessStat,
} from '../../../src/embedded/spawner/sandbox/process-identity.ts';
import { encodeMessage, FrameReader } from '../../../src/embedded/spawner/frames.ts';
import { pathsOf, type DaemonMessage } from '../../../src/embedded/spawner/protocol.ts';
import { SpawnerLost } from '../../../src/embedded/driver/command-link.ts';
import { SpawnerLink, type LinkEvents } from '../../../src/embedded/driver/spawner-link.ts';
import { systemClock } from '../../../src/embedded/system-clock.ts';
import { aSpawnedDriver, buildLauncher, LAUNCHER } from '../../support/harness/a-spawned-driver.ts';
import { aWatchedDriver, type WatchedDriver } from '../../support/harness/a-watched-driver.ts';
import { eventually } from '../../support/harness/eventually.ts';
import { FactLog } from '../../support/harness/fact-log.ts';
import { aClaim, aDefinition, anOrder, permitted } from '../../support/builders/instance-orders.ts';
import { quietLog } from '../../support/fakes/quiet-log.ts';
import { rejection } from '../../support/harness/rejection.ts';
import { skipBecause } from '../../support/harness/skip-because.ts';

/** Empty where it has just ended. */
const commandLineOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1');
  } catch {
    return '';
  }
};

const UNHEARD: LinkEvents = {
  fact: () => {},
  silent: () => {},
  back: () => {},
  givenUp: () => {},
  lost: () => {},
};

describe('recovery after a restart', function () {
  let spawned: WatchedDriver;

  before(() => buildLauncher());
  beforeEach(async () => {
    spawned = await aWatchedDriver();
  });
  afterEach(() => spawned.close());

  let killed = 0;
  const killSpawner = async (): Promise<void> => {
    killed = spawned.spawnerPid();
    process.kill(killed, 'SIGKILL');
    await eventually(() => (readProcessStat(killed)?.state ?? 'Z') === 'Z', 'the spawner is dead');
  };
  const backUp = (): Promise<void> =>
    eventually(
      () =>
        spawned.driver.describe().problems.length === 0 &&
        ![0, killed].includes(spawned.spawnerPid()),
      'another is connected',
    );

  it('adopts running sandboxes after a kill of the spawner, and works as before', async () => {
    const { id } = await spawned.launched();
    const before = spawned.runningOf(id);
    await killSpawner();
    await backUp();
    expect(await spawned.sh(id, 'echo still here')).to.equal('still here\n');
    expect(spawned.runningOf(id)).to.deep.equal(before);
    expect(isAlive(before.init)).to.equal(true);
    expect(spawned.log.kinds(id)).to.deep.equal(['starting', 'available']);
  });

  it('reports the end of an adopted sandbox with an unknown exit code', async () => {
    const { id } = await spawned.launched(
      anOrder(
        aDefinition({ argv: ['sh', '-c', 'until [ -e /tmp/end ]; do sleep 0.1; done; exit 4'] }),
      ),
    );
    await killSpawner();
    await backUp();
    await spawned.sh(id, 'touch /tmp/end');
    expect((await spawned.log.when(id, 'gone')).vitals).to.deep.include({ exitCode: null });
  });

  it('retires an adopted sandbox', async () => {
    const record = await spawned.launched();
    const running = spawned.runningOf(record.id);
    await killSpawner();
    await backUp();
    await spawned.driver.retire(record.id, record.revision);
    await spawned.log.when(record.id, 'gone');
    expect(isAlive(running.init)).to.equal(false);
  });

  it('reports sandboxes that ended without a spawner', async () => {
    const { id } = await spawned.launched();
    const running = spawned.runningOf(id);
    await killSpawner();
    if (isAlive(running.init)) process.kill(running.init.pid, 'SIGKILL');
    const gone = await spawned.log.when(id, 'gone');
    expect(gone.vitals).to.deep.include({ exitCode: null });
    expect(gone.record?.id).to.equal(id);
    await eventually(
      () => readdirSync(join(spawned.dataDir, 'run')).length === 0,
      'its note is gone',
    );
  });

  it('completes a release that was requested without a spawner', async () => {
    const record = await spawned.launched();
    await spawned.driver.claim(record, aClaim());
    await killSpawner();
    await spawned.driver.release(record.id, { reason: 'deleted', exitCode: null });
    expect((await spawned.log.when(record.id, 'gone')).record).to.deep.include({ state: 'ending' });
  });

  it('repeats pending launches with the same ids, once each', async () => {
    const launches = Array.from({ length: 8 }, () => spawned.driver.launch(anOrder(), permitted));
    await killSpawner();
    const records = await Promise.all(launches);
    // Those that were half started are ended and reported; all others come up.
    for (const { id } of records) {
      await eventually(
        () => spawned.log.kinds(id).some((kind) => kind === 'available' || kind === 'gone'),
        `${id} is up or gone`,
      );
    }
    const up = (): readonly string[] =>
      records
        .map(({ id }) => id)
        .filter((id) => spawned.log.kinds(id).at(-1) === 'available')
        .sort();
    expect(up()).not.to.have.lengthOf(0);
    await eventually(
      () => readdirSync(join(spawned.dataDir, 'run')).sort().join() === up().join(),
      'there is a note of each that is up, and no other',
    );
  });

  it('fails and kills a running command with a clear error', async () => {
    const { id } = await spawned.launched();
    const running = rejection(spawned.exec(id, ['sleep', '960']));
    const sleeps = async (): Promise<boolean> =>
      (await spawned.sh(id, 'cat /proc/[0-9]*/cmdline | tr "\\0" " "')).includes('sleep 960 ');
    await eventually(sleeps, 'it runs');
    await killSpawner();
    expect(await running)
      .to.be.instanceOf(SpawnerLost)
      .with.property('message', 'the spawner ended; the command of this request is lost');
    await backUp();
    await eventually(async () => !(await sleeps()), 'the command is gone too');
  });

  it('leaves terminals as they are', async () => {
    const { id } = await spawned.launched();
    const terminal = await spawned.driver.attach(id, { argv: ['cat'], cols: 80, rows: 24 });
    let shown = '';
    terminal.stream.on('data', (bytes: Buffer) => (shown += String(bytes)));
    await killSpawner();
    terminal.stream.write('still here\r');
    await eventually(() => shown.split('still here').length > 2, 'it is typed and echoed');
    terminal.close();
    expect(await terminal.exit).to.equal(null);
  });

  it('keeps sandboxes through a stop of the daemon, and finds them again', async () => {
    const record = await spawned.launched();
    const claimed = await spawned.driver.claim(record, aClaim());
    const running = spawned.runningOf(record.id);
    const spawner = spawned.spawnerPid();
    await spawned.driver.stop();
    expect(readProcessStat(spawner)?.state ?? 'Z').to.equal('Z');
    expect(isAlive(running.init)).to.equal(true);
    const log = new FactLog();
    await spawned.again().watch(log.report);
    expect(log.of(record.id)).to.deep.equal([
      {
        id: record.id,
        record: claimed,
        vitals: { kind: 'available', startedAt: running.startedAt },
      },
    ]);
  });

  it('reuses the spawner after a crash of the daemon, and ends it at a stop', async () => {
    const other = aSpawnedDriver();
    const order = anOrder();
    await other.records.launchOrder(order.record, order.definition);
    const link = new SpawnerLink(await other.connect(), {
      clock: systemClock(),
      log: quietLog,
      events: UNHEARD,
    });
    await link.greet({
      launcherPath: LAUNCHER,
      bwrapPath: '/usr/bin/bwrap',
      uidRange: { first: 2_000_000_000, count: 65_536 },
      pidsMax: 64,
      parallelStarts: 4,
      logs: { fileBytes: 1 << 20, totalBytes: 1 << 28, retentionMs: 3_600_000 },
    });
    await link.start(order.record.id, { tenant: 'a', definition: order.definition });
    const spawner = other.spawnerPid();
    link.close();
    const log = new FactLog();
    await other.driver.watch(log.report);
    await log.when(order.record.id, 'available');
    expect(other.spawnerPid()).to.equal(spawner);
    await other.close();
    expect(readProcessStat(spawner)?.state ?? 'Z').to.equal('Z');
  });

  it('reports records without processes as gone, and kills processes without records', async () => {
    const { record: orphan } = anOrder();
    await spawned.records.launchOrder(orphan, aDefinition());
    const unrecorded = await spawned.launched();
    const running = spawned.runningOf(unrecorded.id);
    await spawned.driver.stop();
    await spawned.records.forget(unrecorded.id);
    const log = new FactLog();
    await spawned.again().watch(log.report);
    expect(log.kinds(orphan.id)).to.deep.equal(['gone']);
    await eventually(() => !isAlive(running.init), 'the process without a record is ended');
    expect(log.of(unrecorded.id)).to.deep.equal([]);
  });

  it('ignores a launcher that never got its order', async () => {
    const launch = Launch.begin(LAUNCHER, {
      init: () => {},
      executed: () => {},
      failed: () => {},
      ended: () => {},
    });
    // What a spawner leaves that was killed between its note and its order: the note, and a launcher at
    // its end of file.
    const id = v7();
    await spawned.driver.stop();
    new Notes(spawned.dataDir).write({
      id,
      tenant: 'alpha/alpha/alice',
      bootId: readBootId(),
      outer: launch.outer,
      uid: 2_000_000_001,
      cgroups: [],
      env: {},
      workingDir: '/',
    });
    const log = new FactLog();
    await spawned.again().watch(log.report);
    await eventually(
      () => !isAlive(launch.outer) && readdirSync(join(spawned.dataDir, 'run')).length === 0,
      'the launcher is gone, and its note',
    );
    expect(log.facts).to.deep.equal([]);
  });

  it('removes a cgroup with a torn note and its processes', async function () {
    if (!spawned.driver.describe().isolation.startsWith('cgroup'))
      skipBecause(this, 'there are no cgroups here');
    const record = await spawned.launched();
    const [note, running] = [spawned.noteOf(record.id), spawned.runningOf(record.id)];
    await spawned.driver.stop();
    writeFileSync(join(spawned.dataDir, 'run', record.id), '{"id":');
    const log = new FactLog();
    await spawned.again().watch(log.report);
    expect(log.kinds(record.id)).to.deep.equal(['gone']);
    await eventually(
      () => !isAlive(running.init) && !note.cgroups.some((folder) => existsSync(folder)),
      'nothing of it runs, and its cgroups are gone',
    );
  });

  for (const [what, boot, off] of [
    ['another start time', readBootId(), 1],
    ['the noted start time, but of another boot', v7(), 0],
  ] as const) {
    it(`does not touch a process with a noted pid but ${what}`, async () => {
      const innocent = spawn('sleep', ['950'], { stdio: 'ignore' });
      const stat = readProcessStat(innocent.pid ?? 0);
      const id = v7();
      const noted = { pid: stat?.pid ?? 0, startTime: String(Number(stat?.startTime) - off) };
      await spawned.driver.stop();
      const notes = new Notes(spawned.dataDir);
      notes.write({
        id,
        tenant: 'alpha/alpha/alice',
        bootId: boot,
        outer: noted,
        uid: 2_000_000_001,
        cgroups: [],
        env: {},
        workingDir: '/',
      });
      notes.writeRunning(id, { init: noted, startedAt: 1 });
      await spawned.again().watch(() => {});
      expect(readdirSync(join(spawned.dataDir, 'run'))).to.deep.equal([]);
      expect(readProcessStat(innocent.pid ?? 0)?.startTime).to.equal(stat?.startTime);
      expect(innocent.exitCode).to.equal(null);
      innocent.kill();
    });
  }

  it('replaces a spawner of another version', async () => {
    const { id } = await spawned.launched();
    await spawned.driver.stop();
    const asked: string[] = [];
    // One that speaks a version from the future, and leaves when it is told to.
    const foreign = createServer((socket) => {
      const reader = new FrameReader();
      socket.on('data', (chunk) => {
        for (const { payload } of reader.feed(chunk)) {
          const { type } = JSON.parse(String(payload)) as DaemonMessage;
          asked.push(type);
          if (type === 'hello')
            socket.write(
              encodeMessage({
                type: 'hello',
                protocol: 99,
                pid: 1,
                isolation: 'cgroup-v9',
                warnings: [],
              }),
            );
          if (type === 'leave') {
            foreign.close();
            socket.destroy();
          }
        }
      });
    });
    await new Promise<void>((resolve) => {
      foreign.listen(pathsOf(spawned.dataDir).socket, resolve);
    });
    const driver = spawned.again();
    const log = new FactLog();
    await driver.watch(log.report);
    expect(asked).to.deep.equal(['hello', 'leave']);
    expect(log.kinds(id)).to.deep.equal(['available']);
    expect(driver.describe().isolation).to.not.equal('cgroup-v9');
  });

  it('leaves processes to the next daemon if it stops before the spawner is ready', async () => {
    const asked: string[] = [];
    const busy = createServer((socket) => {
      const reader = new FrameReader();
      socket.on('data', (chunk) => {
        for (const { payload } of reader.feed(chunk))
          asked.push((JSON.parse(String(payload)) as DaemonMessage).type);
        if (asked.length > 1) socket.destroy();
      });
    });
    await spawned.driver.stop();
    await new Promise<void>((resolve) => {
      busy.listen(pathsOf(spawned.dataDir).socket, resolve);
    });
    const driver = spawned.again();
    const starting = driver.watch(() => {}).catch((error: unknown) => error);
    await eventually(() => asked.length === 1, 'it says hello');
    await driver.stop();
    busy.close();
    expect(await starting).to.be.instanceOf(Error);
    expect(asked).to.deep.equal(['hello', 'leave']);
  });

  it('replaces a killed watcher, and still sees every end', async () => {
    const first = await spawned.launched();
    const running = spawned.runningOf(first.id);
    const spawner = spawned.spawnerPid();
    const watchers = (): readonly number[] =>
      readdirSync('/proc')
        .filter((name) => /^\d+$/.test(name))
        .map(Number)
        .filter((pid) => {
          const stat = readProcessStat(pid);
          return (
            stat?.parent === spawner && stat.state !== 'Z' && commandLineOf(pid).includes('\0watch')
          );
        });
    await eventually(() => watchers().length === 1, 'one watches');
    const [watcher = -1] = watchers();
    process.kill(watcher, 'SIGKILL');
    await eventually(() => watchers().some((pid) => pid !== watcher), 'another watches');
    await spawned.driver.retire(first.id, first.revision);
    await spawned.log.when(first.id, 'gone');
    expect(isAlive(running.init)).to.equal(false);
  });
});
