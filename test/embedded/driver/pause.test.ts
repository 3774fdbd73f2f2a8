import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import { NotJoinable, OutcomeUnknown } from '../../../src/contracts/sandbox-driver.ts';
import type { InstanceRecord } from '../../../src/model/sandbox.ts';
import { aClaim } from '../../support/builders/instance-orders.ts';
import { buildLauncher } from '../../support/harness/a-spawned-driver.ts';
import { aWatchedDriver, type WatchedDriver } from '../../support/harness/a-watched-driver.ts';
import { eventually } from '../../support/harness/eventually.ts';
import { skipBecause } from '../../support/harness/skip-because.ts';

const TICKS = 'i=0; while :; do i=$((i+1)); echo $i > /tmp/ticks; sleep 0.01; done';

describe('a paused sandbox on this machine', function () {
  let spawned: WatchedDriver;
  let record: InstanceRecord;

  before(async function () {
    buildLauncher();
    spawned = await aWatchedDriver();
    if (!spawned.driver.describe().pauses) skipBecause(this, 'this machine has no freezer for us');
  });
  after(() => spawned?.close());

  beforeEach(async () => {
    const { driver } = spawned;
    record = await driver.claim(await spawned.launched(), aClaim());
    await spawned.sh(record.id, `setsid sh -c '${TICKS}' >/dev/null 2>&1 </dev/null &`);
    await eventually(async () => Number(await ticks()) > 3, 'it counts');
  });
  afterEach(async () => {
    await spawned.driver.release(record.id, { reason: 'deleted', exitCode: null });
    await spawned.log.when(record.id, 'gone');
    await spawned.driver.forget(record.id);
  });

  const ticks = (): Promise<string> => spawned.sh(record.id, 'cat /tmp/ticks');
  const paused = async (): Promise<InstanceRecord> =>
    await spawned.driver.amend(record.id, { pausedAt: Date.now() }, record.revision);
  const goOn = async ({ revision }: InstanceRecord): Promise<void> => {
    record = await spawned.driver.amend(record.id, { pausedAt: null }, revision);
  };
  const standsStill = (): boolean => frozenProcesses(record.id).length > 1;
  const killSpawner = async (): Promise<void> => {
    const killed = spawned.spawnerPid();
    process.kill(killed, 'SIGKILL');
    await eventually(
      () =>
        spawned.driver.describe().problems.length === 0 &&
        ![0, killed].includes(spawned.spawnerPid()),
      'there is another',
    );
  };

  it('stops with its memory intact, and resumes from there', async () => {
    const at = Number(await ticks());
    const held = await paused();
    expect(standsStill()).to.equal(true);
    await goOn(held);
    await eventually(async () => Number(await ticks()) > at + 3, 'it counts on');
  });

  it('can be ended like any other', async () => {
    await paused();
    await spawned.driver.release(record.id, { reason: 'deleted', exitCode: null });
    await spawned.log.when(record.id, 'gone');
  });

  it('stays paused after the death of its spawner, and resumes on request', async () => {
    const held = await paused();
    await killSpawner();
    expect(standsStill()).to.equal(true);
    await goOn(held);
    const at = Number(await ticks());
    await eventually(async () => Number(await ticks()) > at, 'it counts on');
  });

  /** As its record says, once whoever was lost is back; and it can be told either way again. */
  const isAsItsRecordSays = async (asked: Promise<unknown>): Promise<void> => {
    const refused = await asked.then(
      () => undefined,
      (error: unknown) => error,
    );
    if (refused !== undefined)
      expect(refused).to.satisfy((error: unknown) =>
        [OutcomeUnknown, NotJoinable].some((kind) => error instanceof kind),
      );
    await eventually(() => spawned.driver.describe().problems.length === 0, 'its spawner is back');
    const now = await spawned.driver.read(record.id);
    if (!now.record) throw new Error('there is no record');
    const held = now.record.claim?.pausedAt !== undefined;
    if (refused === undefined) expect(held).to.equal(true);
    await eventually(() => standsStill() === held, 'it is as its record says');
    await goOn(now.record);
    const at = Number(await ticks());
    await eventually(async () => Number(await ticks()) > at, 'it counts on');
  };

  for (const turns of [0, 1, 5])
    it(`matches its record if the spawner dies during the pause (${turns})`, async () => {
      const asked = paused();
      asked.catch(() => undefined);
      for (let turn = 0; turn < turns; turn += 1) await aTurn();
      await killSpawner();
      await isAsItsRecordSays(asked);
    });

  it('can be paused and resumed again', async () => {
    const once = await paused();
    const again = await spawned.driver.amend(record.id, { pausedAt: 1 }, once.revision);
    expect(again.claim?.pausedAt).to.equal(1);
    await goOn(again);
    record = await spawned.driver.amend(record.id, { pausedAt: null }, record.revision);
    await ticks();
  });
});

const aTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/** The processes of a sandbox whose cgroup the kernel says to be frozen. */
const frozenProcesses = (id: string): readonly string[] =>
  readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    const line = contentOf(`/proc/${pid}/cgroup`)
      .split('\n')
      .find((one) => one.includes(id) && /^\d+:(?:freezer)?:/.test(one));
    const folder = line?.replace(/^\d+:(freezer)?:/, (_, v1?: string) =>
      v1 === undefined ? '/sys/fs/cgroup' : '/sys/fs/cgroup/freezer',
    );
    if (folder === undefined) return false;
    return (
      contentOf(`${folder}/freezer.state`).trim() === 'FROZEN' ||
      /^frozen 1$/m.test(contentOf(`${folder}/cgroup.events`))
    );
  });

/** Empty for what is gone meanwhile. */
const contentOf = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
};
