import { expect } from 'chai';
import { Refusal } from '../../src/model/refusals.ts';
import { CopyFaults, copiesOnWorlds } from '../support/fakes/copies-on-worlds.ts';
import { alice } from '../support/harness/a-supervisor.ts';
import { anEnvWorld } from '../support/harness/an-env-world.ts';
import { rejection } from '../support/harness/rejection.ts';

const STEP_MS = 250;
/** Copies are looked at, and agree, within this. */
const LOOKS_MS = 10_000;

/** A manager with an env `e`, and two clusters that it reaches through faults. */
const aFleet = async (overrides: object = {}) => {
  const [w1, w2] = [await anEnvWorld(), await anEnvWorld()];
  const faults = { w1: new CopyFaults(), w2: new CopyFaults() };
  const copies = copiesOnWorlds({
    w1: { operations: w1, faults: faults.w1 },
    w2: { operations: w2, faults: faults.w2 },
  });
  const hub = await anEnvWorld({ copies });
  await hub.made(overrides);
  const add = (name: string, clusterId: string, config: object = {}) =>
    hub.addMember(alice, 'e', { name, clusterId, replicas: 1, config });
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += STEP_MS) {
      for (const { clock } of [hub, w1, w2]) clock.advance(STEP_MS);
      await new Promise((resolve) => void setImmediate(resolve));
    }
  };
  return { hub, w1, w2, faults, add, pass };
};

describe('an env over clusters', () => {
  it('is claimed from at the nearest of equal members', async () => {
    const { hub, faults, add, pass } = await aFleet();
    await add('a', 'w1');
    await add('b', 'w2');
    await add('c', 'local');
    await pass(LOOKS_MS);
    const places = () => hub.claimPlaces(alice, 'e').map(({ poolName }) => poolName);

    Object.assign(faults.w1, { latencyMs: 30 });
    Object.assign(faults.w2, { latencyMs: 5 });
    expect(places()).to.deep.equal(['c', 'b', 'a']);
    faults.w2.latencyMs = 31;
    expect(places()).to.deep.equal(['c', 'a', 'b']);

    await hub.updateMember(
      alice,
      { env: 'e', member: 'b' },
      { config: { priority: 1 }, ifMatch: undefined },
    );
    expect(places()).to.deep.equal(['b', 'c', 'a']);
  });

  it('reports the members of a disconnected cluster at a sync, and syncs the others', async () => {
    const { hub, w1, w2, faults, add, pass } = await aFleet({
      updateStrategy: { autoUpdate: false },
    });
    for (const [name, clusterId] of [
      ['a', 'w1'],
      ['b', 'w2'],
      ['c', 'local'],
      ['d', 'w1'],
    ] as const)
      await add(name, clusterId);
    await hub.patchEnv(alice, 'e', { patch: { overrides: { defaultIdleTimeout: '7m' } } });
    await pass(LOOKS_MS);
    const timeouts = () =>
      [w1.pool('a'), w2.pool('b'), hub.pool('c'), w1.pool('d')].map(
        (pool) => pool?.definition.idleTimeoutMs,
      );
    expect(timeouts()).to.deep.equal([60_000, 60_000, 60_000, 60_000]);

    faults.w1.isCut = true;
    const refusal = await rejection(hub.syncEnv(alice, 'e'));

    expect(refusal).to.be.instanceOf(Refusal);
    const error = 'the cluster w1 is cut off';
    expect(refusal).to.deep.include({
      code: 'ENV_SYNC_PARTIAL',
      detail: {
        synced: ['b', 'c'],
        failed: [
          { member: 'a', clusterID: 'w1', error },
          { member: 'd', clusterID: 'w1', error },
        ],
      },
    });
    expect(timeouts()).to.deep.equal([60_000, 420_000, 420_000, 60_000]);

    faults.w1.isCut = false;
    await hub.syncEnv(alice, 'e');
    expect(timeouts()).to.deep.equal([420_000, 420_000, 420_000, 420_000]);
  });
});
