import { expect } from 'chai';
import { STEADY_MS } from '../../src/machines/sandbox/arithmetic.ts';
import { CLOSED_BREAKER, type PoolRecord } from '../../src/model/pools/pool.ts';
import { aCoordination } from '../support/fakes/a-coordination.ts';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { aDefinition } from '../support/builders/instance-orders.ts';
import { aReplica, sharedStores } from '../support/harness/shared-supervisors.ts';

const filled = async (part: Partial<PoolRecord> = {}, inFlight = 100) => {
  const world = await aSupervisor({
    pool: { replicas: 8, updateRevision: 'r1', ...part },
    policy: { refill: { perSecond: 1_000, burst: 1_000, inFlight } },
  });
  const shown = () => world.supervisor.pools.get(world.pool.uid)!; // it is never deleted here
  const isFilled = (): boolean =>
    shown().counts.idle + shown().counts.running === shown().record.replicas &&
    shown().phase === 'Ready';
  const revise = (updateRevision: string, container: Parameters<typeof aDefinition>[0] = {}) =>
    world.supervisor.pools.change(world.pool.uid, (record) => ({
      ...record,
      updateRevision,
      definition: aDefinition(container),
      breaker: CLOSED_BREAKER,
    }));
  await eventually(isFilled, 'filled');
  world.clock.advance(STEADY_MS);
  return { ...world, shown, isFilled, revise };
};

describe('a rollout', () => {
  it('replaces idle instances, and never touches running sandboxes', async () => {
    const { supervisor, claim, shown, revise } = await filled();
    const running = [
      await claim(alice, { poolName: 'default' }),
      await claim(alice, { poolName: 'default' }),
    ].map(({ id }) => id);
    await revise('r2');
    await eventually(() => shown().updated.idle === 6 && shown().phase === 'Ready', 'rolled out');
    expect(shown().counts).to.deep.include({ idle: 6, running: 2 });
    expect(running.map((id) => supervisor.sandbox(id)?.status)).to.deep.equal([
      'Running',
      'Running',
    ]);
    expect(shown().conditions.map(({ type, status }) => `${type} ${status}`)).to.deep.equal([
      'Progressing False',
      'Degraded False',
      'TemplateResolved True',
    ]);
  });

  it('never exceeds maxUnavailable or replicas', async () => {
    const { shown, revise } = await filled();
    let [least, most] = [8, 0];
    await revise('r2');
    await eventually(() => {
      const { idle, starting, unavailable } = shown().counts;
      [least, most] = [Math.min(least, idle), Math.max(most, idle + starting + unavailable)];
      return shown().updated.idle === 8 && shown().phase === 'Ready';
    }, 'rolled out');
    expect(least).to.be.at.least(6);
    expect(most).to.be.at.most(8);
  });

  it('shows Updating while it lasts', async () => {
    const { driver, shown, revise } = await filled();
    driver.startsByItself = false;
    await revise('r2');
    await eventually(() => shown().counts.starting === 2, 'two are replaced');
    expect(shown()).to.deep.include({ phase: 'Updating' });
    expect(shown().conditions[0]).to.deep.include({
      type: 'Progressing',
      status: 'True',
      reason: 'RollingOut',
    });
    expect(shown().updated).to.deep.include({ starting: 2, idle: 0 });
  });

  it('hands out the new revision first', async () => {
    const { driver, supervisor, claim, shown, revise } = await filled({
      updateStrategy: { autoUpdate: true, maxUnavailable: '1' },
    });
    driver.startsByItself = false;
    await revise('r2');
    await eventually(
      () => shown().updated.starting === 1 && driver.running().length === 8,
      'one is replaced',
    );
    driver.becomeAvailable(driver.running().at(-1) ?? '');
    await eventually(() => shown().updated.idle === 1, 'one is ready');
    const { id } = await claim(alice, { poolName: 'default' });
    expect(supervisor.sandbox(id)?.context.record?.updateRevision).to.equal('r2');
  });

  it('stops if the new revision fails to start, keeps the old instances, and resumes at the next change', async () => {
    const { shown, revise, clock } = await filled();
    await revise('r2', { image: 'gone' });
    await eventually(() => shown().phase === 'Degraded', 'blocked');
    expect(shown().counts.idle).to.be.at.least(6);
    expect(shown().conditions.map(({ status, reason }) => `${status} ${reason}`)).to.deep.equal([
      'False RolloutBlocked',
      'True StartsFail',
      'True Resolved',
    ]);
    expect(shown().conditions[0]?.message).to.contain('only host is supported');
    const left = shown().counts.idle;
    for (let pause = 0; pause < 4; pause++) {
      clock.advance(10_000);
      await eventually(
        () => shown().counts.starting + shown().counts.failed === 0,
        'what was tried is gone',
      );
    }
    expect(shown()).to.deep.include({ phase: 'Degraded' });
    expect(shown().counts.idle).to.equal(left);

    await revise('r3');
    await eventually(() => shown().updated.idle === 8 && shown().phase === 'Ready', 'rolled out');
  });

  it('keeps the old instances if new ones die soon after they are ready', async () => {
    const { driver, supervisor, shown, revise, clock, pool } = await filled();
    const older = driver.running();
    await revise('r2', { env: { FLAWED: 'yes' } });
    for (let death = 0; death < 3; death++) {
      await eventually(
        () => shown().updated.idle === 2 || shown().phase === 'Degraded',
        'the first of them are ready',
      );
      clock.advance(2_000);
      const [flawed] = driver.running().filter((id) => !older.includes(id));
      if (flawed !== undefined) driver.end(flawed, 1);
      await eventually(
        () => flawed === undefined || supervisor.sandbox(flawed)?.status !== 'Idle',
        'it is dead',
      );
    }
    await eventually(() => shown().phase === 'Degraded', 'blocked');
    expect(driver.running().filter((id) => older.includes(id))).to.have.length(6);
    expect(supervisor.pools.get(pool.uid)?.conditions[0]).to.include({ reason: 'RolloutBlocked' });
  });

  it('waits until a few new instances have proved to live, then replaces the rest without a pause', async () => {
    const { shown, revise, clock } = await filled();
    await revise('r2', { env: { NEW: 'yes' } });
    await eventually(() => shown().updated.idle === 2, 'the first are ready');
    expect(shown().counts).to.include({ idle: 8 });
    clock.advance(STEADY_MS);
    await eventually(() => shown().updated.idle === 8 && shown().phase === 'Ready', 'rolled out');
  });

  it('resumes by itself once the new revision can start', async () => {
    const { driver, shown, revise, clock } = await filled({}, 1);
    for (let i = 0; i < 3; i++) driver.failNext('launch', new Error('no such image'));
    await revise('r2');
    await eventually(() => shown().phase === 'Degraded', 'blocked');
    clock.advance(5_000);
    await eventually(() => shown().updated.idle === 1, 'one is tried');
    clock.advance(STEADY_MS);
    await eventually(() => shown().updated.idle === 8 && shown().phase === 'Ready', 'rolled out');
  });

  it('is continued by the replica that takes over', async () => {
    const stores = await sharedStores({ pool: { replicas: 8, updateRevision: 'r1' } });
    const coordination = aCoordination(stores.clock);
    const [one, two] = [await aReplica(stores, coordination), await aReplica(stores, coordination)];
    const shown = () => two.supervisor.pools.get(stores.pool.uid);
    one.lead();
    await eventually(() => shown()?.counts.idle === 8, 'filled');
    stores.truth.startsByItself = false;
    await one.supervisor.pools.change(stores.pool.uid, (record) => ({
      ...record,
      updateRevision: 'r2',
    }));
    await eventually(() => shown()?.updated.starting === 2, 'begun');
    one.die();
    stores.truth.startsByItself = true;
    two.lead();
    for (const id of stores.truth.running()) stores.truth.becomeAvailable(id);
    await eventually(() => shown()?.updated.idle === 2, 'the first are ready');
    stores.clock.advance(STEADY_MS);
    await eventually(() => shown()?.updated.idle === 8, 'rolled out by the other');
  });
});
