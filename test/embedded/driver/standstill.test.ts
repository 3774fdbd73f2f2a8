import { expect } from 'chai';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { OutcomeUnknown } from '../../../src/contracts/sandbox-driver.ts';
import {
  isAlive,
  readProcessStat,
} from '../../../src/embedded/spawner/sandbox/process-identity.ts';
import {
  aSpawnedDriver,
  buildLauncher,
  spawnerCommand,
  type SpawnedDriver,
} from '../../support/harness/a-spawned-driver.ts';
import { aWatchedDriver, type WatchedDriver } from '../../support/harness/a-watched-driver.ts';
import { eventually } from '../../support/harness/eventually.ts';
import { anOrder, permitted } from '../../support/builders/instance-orders.ts';
import { rejection } from '../../support/harness/rejection.ts';
import { TestClock } from '../../support/fakes/test-clock.ts';

const SILENT = 'the spawner does not answer; it is replaced within half a minute';

describe('a spawner that hangs', function () {
  let clock: TestClock;
  let spawned: WatchedDriver;
  let stopped: number;

  before(() => buildLauncher());
  beforeEach(async () => {
    clock = new TestClock();
    spawned = await aWatchedDriver({ clock });
  });
  afterEach(() => spawned.close());

  const problems = (): readonly string[] => spawned.driver.describe().problems;
  const dead = (): boolean => (readProcessStat(stopped)?.state ?? 'Z') === 'Z';
  /** Time goes on for the daemon alone. */
  const stop = (): void => {
    stopped = spawned.spawnerPid();
    process.kill(stopped, 'SIGSTOP');
  };
  /** What was asked for is under way. */
  const turn = (): Promise<void> =>
    new Promise((resolve) => {
      setImmediate(resolve);
    });
  /** Only a driver that is connected has its spawner leave at once. */
  const ended = async (other: SpawnedDriver): Promise<void> => {
    await other.driver.watch(() => {});
    await other.close();
  };
  /** The clock stands still while the next one begins, which takes it real time. */
  const replaced = async (): Promise<void> => {
    await eventually(() => {
      clock.advance(500);
      return dead();
    }, 'it is ended');
    await eventually(() => problems().length === 0, 'another is connected');
  };

  it('shows in readiness within 3 s, until it recovers', async () => {
    const { id } = await spawned.launched();
    stop();
    clock.advance(3_000);
    expect(problems()).to.deep.equal([SILENT]);

    process.kill(stopped, 'SIGCONT');
    await eventually(() => problems().length === 0, 'it is well again');
    expect(await spawned.sh(id, 'echo here')).to.equal('here\n');
    expect(spawned.spawnerPid()).to.equal(stopped);
  });

  it("delays a command's answer by at most 3 s beyond its timeout, with an unknown outcome", async () => {
    const { id } = await spawned.launched();
    stop();
    const [brief, long] = [1_000, 10_000].map((timeoutMs) =>
      rejection(spawned.exec(id, ['true'], { timeoutMs })),
    );
    await turn();
    clock.advance(4_000);
    expect(await brief).to.be.instanceOf(OutcomeUnknown);
    clock.advance(7_000);
    expect(await long).to.be.instanceOf(OutcomeUnknown);
    process.kill(stopped, 'SIGCONT');
  });

  it('gets no commands while it is silent', async () => {
    const { id } = await spawned.launched();
    stop();
    clock.advance(3_000);
    expect(await rejection(spawned.exec(id, ['true'], { timeoutMs: 100 }))).to.be.instanceOf(
      OutcomeUnknown,
    );

    const waiting = spawned.sh(id, 'echo late');
    process.kill(stopped, 'SIGCONT');
    expect(await waiting).to.equal('late\n');
  });

  it('is replaced; its sandboxes survive, and running commands have unknown outcomes', async () => {
    const record = await spawned.launched();
    const running = spawned.runningOf(record.id);
    stop();
    const launched = spawned.driver.launch(anOrder(), permitted);
    const lost = rejection(spawned.exec(record.id, ['true'], { timeoutMs: 60_000 }));
    await turn();
    await replaced();

    expect(await lost).to.be.instanceOf(OutcomeUnknown);
    expect(isAlive(running.init)).to.equal(true);
    expect(spawned.log.kinds(record.id)).to.deep.equal(['starting', 'available']);
    expect(await spawned.sh(record.id, 'echo still here')).to.equal('still here\n');
    await spawned.log.when((await launched).id, 'available');
    await spawned.driver.retire(record.id, record.revision);
    await spawned.log.when(record.id, 'gone');
  });

  it('is replaced by the next daemon after a restart', async () => {
    const other = aSpawnedDriver({ clock });
    (await other.connect()).destroy();
    stopped = other.spawnerPid();
    process.kill(stopped, 'SIGSTOP');
    const watching = other.driver.watch(() => {});
    await eventually(() => {
      clock.advance(1_000);
      return dead();
    }, 'it is ended');
    await watching;
    expect(other.driver.describe().problems).to.deep.equal([]);
    await other.close();
  });

  it('is replaced even if it ends while the next daemon connects', async () => {
    const other = aSpawnedDriver({ clock });
    const ending = createServer().listen(join(other.dataDir, 'spawner.sock'));
    await once(ending, 'listening');
    const connecting = other.connect();
    ending.close(); // before the kernel's word of the connection is read
    (await connecting).destroy();
    expect(readProcessStat(other.spawnerPid())?.state).to.match(/^[RSD]$/);
    await ended(other);
  });

  describe('before its start', () => {
    let other: SpawnedDriver;
    let connecting: Promise<Socket>;
    let gate: string;

    beforeEach(async () => {
      other = aSpawnedDriver({ clock });
      gate = join(other.dataDir, 'gate');
      execFileSync('mkfifo', [gate]);
      const waiting = clock.waiting;
      connecting = other.connect([
        ...['/bin/sh', '-c', 'gate=$1; shift; read go < "$gate"; exec "$@"', 'late', gate],
        ...spawnerCommand(),
      ]);
      connecting.catch(() => undefined);
      await eventually(() => clock.waiting > waiting, 'it is waited for');
    });
    const begins = (): void => writeFileSync(gate, 'go\n');

    it('can take 30 s, as in a container with a tenth of a core', async () => {
      clock.advance(29_999);
      begins();
      (await connecting).destroy();
      expect(readProcessStat(other.spawnerPid())?.state).to.match(/^[RSD]$/);
      await ended(other);
    });

    it('times out after that, but serves once it starts', async () => {
      clock.advance(30_000);
      expect((await rejection(connecting)).message).to.include('it takes too long');
      const late = other.spawnerPid();
      begins();
      await other.driver.watch(() => {});
      await other.driver.launch(anOrder(), permitted);
      expect(other.spawnerPid()).to.equal(late);
      await other.close();
    });
  });

  it('ends with the daemon in any case', async () => {
    stop();
    clock.advance(3_000);
    await spawned.driver.stop();
    await eventually(dead, 'it is gone');
  });

  it('ends with the daemon even if it hangs during the stop', async () => {
    stop();
    const stopping = spawned.driver.stop();
    await turn();
    clock.advance(5_000);
    await eventually(dead, 'it is ended');
    await stopping;
  });

  it('ends with a daemon that stops before the first message', async () => {
    const other = aSpawnedDriver({ clock });
    (await other.connect()).destroy();
    stopped = other.spawnerPid();
    process.kill(stopped, 'SIGSTOP');
    const waiting = clock.waiting;
    const watching = rejection(other.driver.watch(() => {}));
    await eventually(() => clock.waiting > waiting, 'it is connected to');
    const stopping = other.driver.stop();
    await turn();
    clock.advance(5_000);
    await eventually(dead, 'it is ended');
    await stopping;
    expect((await watching).message).to.equal('the daemon stops');
    await other.close();
  });

  it('ends with a daemon that stops before the connection', async () => {
    const command = ['/bin/sh', '-c', 'exec sleep 1000'];
    const other = aSpawnedDriver({ clock, spawnerEntry: { command } });
    const watching = rejection(other.driver.watch(() => {}));
    await eventually(() => other.spawnerPid() > 0, 'it is started');
    stopped = other.spawnerPid();
    const stopping = other.driver.stop();
    await turn();
    clock.advance(5_000);
    await eventually(dead, 'it is ended'); // it would have 30 s to begin
    await stopping;
    expect((await watching).message).to.include('ended by SIGKILL');
    await other.close();
  });
});
