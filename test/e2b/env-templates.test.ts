import { expect } from 'chai';
import { createSandbox } from '../../src/http/e2b/control/create-sandbox.ts';
import { alice } from '../support/harness/a-supervisor.ts';
import { anEnvWorld } from '../support/harness/an-env-world.ts';
import { eventually } from '../support/harness/eventually.ts';
import { anEngine } from '../support/harness/engine-operations.ts';

describe('a template that is an env', () => {
  it('provides an instance of a member with stock', async () => {
    const world = await anEnvWorld();
    await world.made();
    for (const [name, replicas] of [
      ['none', 0],
      ['stocked', 1],
    ] as const)
      await world.addMember(alice, 'e', {
        name,
        replicas,
        config: { priority: name === 'none' ? 2 : 1, maxReplicas: 9 },
      });
    await eventually(
      () => world.supervisor.pools.get(world.pool('stocked')?.uid ?? '')?.counts.idle === 1,
      'a member has one idle',
    );
    const { deleteSandbox, featureGates, getTemplate } = anEngine();

    const made = await createSandbox(
      {
        operations: { claimSandbox: world.claimAs, deleteSandbox, featureGates, getTemplate },
        terms: {
          clusterId: 'local',
          templates: new Map([['base', 'e']]),
          waitMs: 10,
          images: [],
          imageWaitMs: 10,
          openPorts: false,
          withoutPause: 'refuse',
        },
      },
      alice,
      {
        body: { templateID: 'base' },
        lifetimeSeconds: 9,
        more: {},
        signal: new AbortController().signal,
      },
    );

    expect(made.poolName).to.equal('stocked');
  });
});
