import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { v7 } from 'uuid';
import { NoPlace, OutcomeUnknown } from '../../../src/contracts/sandbox-driver.ts';
import { isAlive } from '../../../src/embedded/spawner/sandbox/process-identity.ts';
import { nameOf, pathsOf } from '../../../src/embedded/spawner/protocol.ts';
import { SpawnerUnusable } from '../../../src/embedded/driver/spawner-process.ts';
import { aSpawnedDriver, buildLauncher, isOver } from '../../support/harness/a-spawned-driver.ts';
import { aWatchedDriver, type WatchedDriver } from '../../support/harness/a-watched-driver.ts';
import { eventually } from '../../support/harness/eventually.ts';
import { aClaim, aDefinition, anOrder, permitted } from '../../support/builders/instance-orders.ts';
import { rejection } from '../../support/harness/rejection.ts';
import { stoppedFor } from '../../support/harness/stopped-for.ts';
import { skipBecause } from '../../support/harness/skip-because.ts';

const UNTIL_TOLD = ['sh', '-c', 'until [ -e /tmp/end ]; do sleep 0.05; done; exit 3'];

describe('the life of a real sandbox', function () {
  let spawned: WatchedDriver;

  before(async () => {
    buildLauncher();
    spawned = await aWatchedDriver();
  });
  after(() => spawned.close());

  it('is gone with its exit code when its main process ends', async () => {
    const { id } = await spawned.launched(anOrder(aDefinition({ argv: UNTIL_TOLD })));
    await spawned.sh(id, 'touch /tmp/end');
    const gone = await spawned.log.when(id, 'gone');
    expect(gone.vitals).to.deep.equal({ kind: 'gone', exitCode: 3, reason: 'exited with 3' });
    expect(gone.record?.state).to.equal('idle');
    expect(spawned.log.kinds(id)).to.deep.equal(['starting', 'available', 'gone']);
  });

  it("is gone with its exit code even if the cpu limit delays bubblewrap's report", async () => {
    const { id } = await spawned.launched(anOrder(aDefinition({ argv: UNTIL_TOLD })));
    const standing = stoppedFor(2_500, spawned.noteOf(id).outer);
    await spawned.sh(id, 'touch /tmp/end');
    await standing;

    const { vitals } = await spawned.log.when(id, 'gone');
    expect(vitals).to.deep.equal({ kind: 'gone', exitCode: 3, reason: 'exited with 3' });
  });

  it('does not count as failed if too many launches wait', async () => {
    const full = await aWatchedDriver({ parallelStarts: 0 });
    const waiting = Array.from({ length: 1_024 }, () =>
      rejection(full.driver.launch(anOrder(), permitted)),
    );
    const order = anOrder();

    expect(await rejection(full.driver.launch(order, permitted))).to.be.instanceOf(NoPlace);
    expect(full.log.of(order.record.id).map(({ vitals }) => vitals.kind)).to.deep.equal([
      'starting',
    ]);
    expect(await full.driver.read(order.record.id)).to.have.nested.property('vitals.kind', 'gone');
    await full.close();
    expect((await Promise.all(waiting)).every((error) => error instanceof OutcomeUnknown)).to.equal(
      true,
    );
  });

  it('is gone with its claimed record if it dies while claimed', async () => {
    const argv = ['tail', '-f', '/dev/null'];
    const record = await spawned.launched(anOrder(aDefinition({ argv })));
    const claimed = await spawned.driver.claim(record, aClaim());
    await spawned.exec(record.id, ['sh', '-c', 'kill -9 2']);
    const gone = await spawned.log.when(record.id, 'gone');
    expect(gone.record).to.deep.equal(claimed);
    expect(gone.vitals).to.deep.include({ exitCode: 137 });
  });

  it('never becomes available if its command cannot be executed, and gives the reason', async () => {
    const missing = await spawned.driver.launch(
      anOrder(aDefinition({ argv: ['/no/such', 'argument'] })),
      permitted,
    );
    expect((await spawned.log.when(missing.id, 'gone')).vitals).to.deep.include({
      reason: 'command not found: /no/such',
    });
    const refused = await spawned.driver.launch(
      anOrder(aDefinition({ argv: ['/etc/passwd'] })),
      permitted,
    );
    expect((await spawned.log.when(refused.id, 'gone')).vitals).to.deep.include({
      reason: 'command not executable: /etc/passwd',
    });
    expect(spawned.log.kinds(missing.id)).to.deep.equal(['starting', 'gone']);
  });

  it('never becomes available if bubblewrap fails', async () => {
    const { id } = await spawned.driver.launch(
      anOrder(aDefinition({ workingDir: '/usr/no/such' })),
      permitted,
    );
    expect((await spawned.log.when(id, 'gone')).vitals).to.deep.include({
      exitCode: 1,
      reason: 'exited with 1 before it was up',
    });
    expect(spawned.log.kinds(id)).to.deep.equal(['starting', 'gone']);
  });

  it('leaves no process, cgroup or note behind', async () => {
    const record = await spawned.launched();
    const [note, running] = [spawned.noteOf(record.id), spawned.runningOf(record.id)];
    expect(isAlive(running.init)).to.equal(true);
    await spawned.driver.retire(record.id, record.revision);
    await spawned.log.when(record.id, 'gone');
    expect(isOver(note, running)).to.equal(true);
    expect(note.cgroups.filter((folder) => existsSync(folder))).to.deep.equal([]);
    expect(existsSync(join(spawned.dataDir, 'run', record.id))).to.equal(false);
  });

  it('can end by retirement while it waits and while it starts', async () => {
    const orders = Array.from({ length: 12 }, () => anOrder());
    const launches = orders.map((order) => spawned.driver.launch(order, permitted));
    // Their records are written by then.
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    for (const {
      record: { id },
    } of orders) {
      const stored = await spawned.records.read(id);
      await spawned.driver.retire(id, stored?.record.revision ?? '');
    }
    await Promise.all(launches);
    for (const { record } of orders) await spawned.log.when(record.id, 'gone');
    await eventually(
      () => readdirSync(join(spawned.dataDir, 'run')).length === 0,
      'no note is left',
    );
  });

  it('ends with its daemonized processes', async () => {
    const record = await spawned.launched();
    await spawned.exec(record.id, [
      'sh',
      '-c',
      'for i in 1 2 3; do setsid sh -c "trap \'\' HUP TERM; sleep 970" & done; echo',
    ]);
    const running = spawned.runningOf(record.id);
    await spawned.driver.retire(record.id, record.revision);
    await spawned.log.when(record.id, 'gone');
    expect(isAlive(running.init)).to.equal(false);
  });

  it('has its own host uid, which is reused only much later', async function () {
    if (process.getuid?.() !== 0) skipBecause(this, 'needs root');
    const uids: number[] = [];
    for (let i = 0; i < 3; i += 1) {
      const record = await spawned.launched();
      uids.push(spawned.noteOf(record.id).uid);
      await spawned.driver.retire(record.id, record.revision);
      await spawned.log.when(record.id, 'gone');
    }
    expect(new Set(uids).size).to.equal(3);
  });

  it('removes shared files when the last sandbox is gone and the daemon stops', async () => {
    const other = await aWatchedDriver();
    await other.launched();
    const name = nameOf(other.dataDir);
    expect(existsSync(`/var/lib/${name}`) || existsSync(join(other.dataDir, 'rootfs'))).to.equal(
      true,
    );
    await other.close();
    expect(existsSync(`/var/lib/${name}`)).to.equal(false);
    expect(existsSync(`/sys/fs/cgroup/pids/${name}`)).to.equal(false);
  });

  it('cannot begin without bubblewrap or the launcher, and says what to install', async () => {
    for (const [part, hint] of [
      [{ bwrapPath: '/no/bwrap' }, 'apt-get install bubblewrap'],
      [{ launcherPath: '/no/launcher' }, 'native/build'],
    ] as const) {
      const broken = aSpawnedDriver(part);
      const error = await rejection(broken.driver.watch(() => {}));
      expect(error).to.be.instanceOf(SpawnerUnusable);
      expect(error.message).to.include(hint);
      await broken.close();
    }
  });

  it('cannot begin if sandboxes are impossible here, and says why', async () => {
    const broken = aSpawnedDriver({ bwrapPath: '/bin/false' });
    expect((await rejection(broken.driver.watch(() => {}))).message).to.include(
      'no sandbox can be started on this machine',
    );
    await eventually(() => broken.spawnerPid() === 0, 'its spawner has gone too');
    expect(existsSync(`/var/lib/${nameOf(broken.dataDir)}`)).to.equal(false);
    await broken.close();
  });

  it('is unaffected if the next daemon fails to start', async () => {
    const first = await aWatchedDriver();
    const { id } = await first.launched();
    const { rootfs } = pathsOf(first.dataDir);
    const before = readdirSync(rootfs);
    await first.driver.stop();
    await rejection(first.again({ bwrapPath: '/bin/false' }).watch(() => {}));
    await eventually(() => first.spawnerPid() === 0, 'its spawner has gone');
    expect(readdirSync(rootfs)).to.deep.equal(before);
    expect(isAlive(first.runningOf(id).init)).to.equal(true);
    await first.again().watch(() => {});
    await first.close();
  });

  it('works in a data folder whose path is too long for a socket', async () => {
    const top = mkdtempSync(join(tmpdir(), 'sandpool-test-'));
    const dataDir = join(top, 'x'.repeat(100));
    mkdirSync(dataDir);
    const deep = await aWatchedDriver({ dataDir });
    const { id } = await deep.launched();
    expect(await deep.sh(id, 'echo here')).to.equal('here\n');
    const { socketFolder } = pathsOf(dataDir);
    expect(statSync(socketFolder).mode & 0o777).to.equal(0o700);
    const fact = await deep.driver.processes.start(id, {
      processId: v7(),
      tenant: 'blue',
      argv: ['sleep', '1000'],
      stdin: false,
    });
    await deep.driver.stop();
    await eventually(() => deep.spawnerPid() === 0, 'its spawner has gone');
    expect(existsSync(socketFolder)).to.equal(false);
    const next = deep.again();
    await next.watch(() => {});
    expect(await next.processes.find(id, fact.processId)).to.deep.equal(fact);
    await deep.close();
    rmSync(top, { recursive: true, maxRetries: 5 });
  });
});
