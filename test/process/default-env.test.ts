import { expect } from 'chai';
import { makeDefaultEnv } from '../../src/daemon/default-env.ts';
import type { EnvRecord } from '../../src/model/envs/env.ts';
import type { Caller } from '../../src/model/tenant.ts';
import { FakeOperations } from '../support/fakes/fake-operations.ts';

const KEY = 'team-default/default';
const CALLER: Caller = {
  namespace: 'team-default',
  team: 'default',
  user: 'default',
  role: 'user',
  keyId: 'k',
};

describe('what the first start makes', () => {
  let operations: FakeOperations;
  beforeEach(() => {
    operations = new FakeOperations();
  });

  const make = async ({ replicas = 4, maxReplicas = 64 } = {}): Promise<void> =>
    await makeDefaultEnv({
      config: {
        namespacePattern: 'team-{team}',
        defaultPool: { name: 'default', replicas, maxReplicas, template: 'default' },
      },
      pools: { uidOf: (namespace, name) => operations.pools.get(`${namespace}/${name}`)?.uid },
      operations,
    });
  const env = (): EnvRecord | undefined => operations.envs.get(KEY);
  const isWhole = (): void => {
    expect(env()?.members.map(({ name }) => name)).to.deep.equal(['default']);
    expect(env()?.members[0]?.config, 'its own bounds hold too').to.include({
      minReplicas: 4,
      maxReplicas: 64,
    });
    expect(env()?.groups).to.have.length(1);
    expect(env()?.groups[0])
      .to.deep.include({ name: 'default', enabled: true, minReplicas: 4, maxReplicas: 64 })
      .and.have.nested.property('scaleUpPolicy.mode', 'Moderate');
  };

  it('is an env whose one member grows with demand and comes back', async () => {
    await make();
    isWhole();
    expect(operations.pools.get(KEY)).to.deep.include({ name: 'default', replicas: 4 });
  });

  it('leaves a pool of its name as it is', async () => {
    await operations.createPool(CALLER, {
      name: 'default',
      source: { templateName: 'default' },
      replicas: 7,
      labels: {},
      annotations: {},
    });
    await make();
    expect([env(), operations.pools.get(KEY)?.replicas]).to.deep.equal([undefined, 7]);
  });

  it('is a pool alone where it must not grow', async () => {
    await make({ maxReplicas: 4 });
    expect([env(), operations.pools.get(KEY)?.replicas]).to.deep.equal([undefined, 4]);
  });

  describe('finishes what an interrupted one began', () => {
    beforeEach(async () => {
      await operations.createEnv(CALLER, {
        name: 'default',
        mode: 'WarmPool',
        templateRef: { name: 'default' },
        overrides: {},
        labels: {},
        annotations: {},
      });
    });

    it('that made no member', async () => {
      await make();
      isWhole();
    });

    it('that left the group as it came', async () => {
      await operations.addMember(CALLER, 'default', {
        name: 'default',
        replicas: 4,
        config: { minReplicas: 4, maxReplicas: 64 },
      });
      await make();
      isWhole();
    });

    it('that had the env list a member, whose pool its leader makes', async () => {
      await operations.addMember(CALLER, 'default', {
        name: 'default',
        replicas: 4,
        config: { minReplicas: 4, maxReplicas: 64 },
      });
      operations.pools.clear();
      await make();
      isWhole();
    });
  });
});
