import { expect } from 'chai';
import { STEADY_MS } from '../../src/machines/sandbox/arithmetic.ts';
import type { PoolRecord } from '../../src/model/pools/pool.ts';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { aDefinition } from '../support/builders/instance-orders.ts';

const STARTUP_MS = 30_000;

const filled = async (part: Partial<PoolRecord> = {}) => {
  const definition = { ...aDefinition(), startupTimeoutMs: STARTUP_MS };
  const world = await aSupervisor({ pool: { replicas: 3, definition, ...part } });
  const shown = () => world.supervisor.pools.get(world.pool.uid)!; // it is never deleted here
  await eventually(() => shown().phase === 'Ready', 'filled');
  world.clock.advance(STEADY_MS);
  const [one = '', two = '', three = ''] = world.driver.running();
  /** Moves the clock a second at a time, and lets what follows go on. */
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 1_000) {
      world.clock.advance(1_000);
      for (let turn = 0; turn < 20; turn++)
        await new Promise<void>((resolve) => {
          setImmediate(resolve);
        });
    }
  };
  return { ...world, shown, pass, ids: [one, two, three] as const };
};

describe('an idle instance that stays not ready', () => {
  it('is replaced after the longest time that a start may take', async () => {
    const {
      driver,
      shown,
      pass,
      ids: [one],
    } = await filled();
    driver.becomeUnavailable(one);
    await pass(STARTUP_MS - 1_000);
    expect(driver.running()).to.include(one);
    await pass(12_000);
    expect(driver.running()).to.have.length(3).and.not.include(one);
    expect(shown().counts).to.deep.include({ idle: 3, unavailable: 0 });
    expect(shown().phase).to.equal('Ready');
  });

  it('stays if it becomes ready earlier, and its time restarts', async () => {
    const {
      driver,
      pass,
      ids: [one],
    } = await filled();
    driver.becomeUnavailable(one);
    await pass(STARTUP_MS - 1_000);
    driver.becomeAvailable(one);
    await pass(1_000);
    driver.becomeUnavailable(one);
    await pass(STARTUP_MS - 1_000);
    expect(driver.running()).to.include(one);
  });

  it('stays if its node is at fault', async () => {
    const {
      driver,
      pass,
      ids: [one],
    } = await filled();
    driver.becomeUnavailable(one, 'its node does not answer', { nodeInTrouble: true });
    await pass(3 * STARTUP_MS);
    expect(driver.running()).to.include(one);
  });

  it('is replaced at once on a node that drains', async () => {
    const {
      driver,
      shown,
      pass,
      ids: [one],
    } = await filled();
    driver.becomeUnavailable(one, 'its node is cordoned', { nodeLeaving: true });
    await pass(5_000);
    expect(driver.running()).to.have.length(3).and.not.include(one);
    expect(shown().counts).to.deep.include({ idle: 3, unavailable: 0 });
  });

  it('is replaced before the next unready instance goes', async () => {
    const { driver, shown, pass, ids } = await filled();
    driver.startsByItself = false;
    for (const id of ids) driver.becomeUnavailable(id);
    await pass(STARTUP_MS + 11_000);
    expect(shown().counts).to.deep.include({ starting: 1, unavailable: 2 });
    driver.becomeAvailable(driver.running().at(-1) ?? '');
    await pass(11_000);
    expect(shown().counts).to.deep.include({ idle: 1, starting: 1, unavailable: 1 });
  });

  it('is the only one to go if new instances fail to start', async () => {
    const { driver, shown, pass, ids } = await filled();
    for (const id of ids) driver.becomeUnavailable(id);
    driver.startsByItself = false;
    await pass(10 * STARTUP_MS);
    expect(driver.running().filter((id) => ids.includes(id))).to.have.length(2);
    expect(shown().phase).to.equal('Failed');
  });

  it('does not affect running sandboxes', async () => {
    const { driver, claim, supervisor, pass } = await filled();
    const { id } = await claim(alice, { poolName: 'default' });
    driver.becomeUnavailable(id);
    await pass(3 * STARTUP_MS);
    expect(supervisor.sandbox(id)?.status).to.equal('Running');
  });
});
