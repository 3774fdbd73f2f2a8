import { expect } from 'chai';
import { firstMembers, makeDefaultEnvs } from '../../src/daemon/default-env.ts';
import type { EnvRecord } from '../../src/model/envs/env.ts';
import type { Caller } from '../../src/model/tenant.ts';
import { anEngine, type Engine } from '../support/harness/engine-operations.ts';

const INTERPRETER = 'code-interpreter-v1';
const KEY = 'team-default/default';
const CALLER: Caller = {
  namespace: 'team-default',
  team: 'default',
  user: 'default',
  role: 'user',
  keyId: 'k',
};

describe("the first start's resources", () => {
  let operations: Engine;
  beforeEach(async () => {
    operations = anEngine();
    const { templates } = operations.records;
    const { document, ...record } = templates.records.get('default')!;
    const metadata = { name: INTERPRETER };
    await templates.create({ ...record, name: INTERPRETER, document: { ...document, metadata } });
    await operations.start();
  });

  const configOf = ({ replicas = 4, maxReplicas = 64, most = 16 } = {}) => ({
    namespacePattern: 'team-{team}',
    defaultPool: { name: 'default', replicas, maxReplicas, template: 'default' },
    interpreterPool: { maxReplicas: most },
  });
  const make = async (
    sizes = {},
    {
      quota = 50,
      templates = [INTERPRETER],
    }: { quota?: number; templates?: readonly string[] } = {},
  ): Promise<void> =>
    await makeDefaultEnvs({
      config: { ...configOf(sizes), quotas: { pools: quota } },
      pools: { uidOf: (namespace, name) => operations.pools.get(`${namespace}/${name}`)?.uid },
      hasTemplate: (name) => templates.includes(name),
      operations,
    });
  const env = (): EnvRecord | undefined => operations.records.envs.records.get(KEY);
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

  it('include an env whose only member grows and shrinks with demand', async () => {
    await make();
    isWhole();
    expect(operations.pools.get(KEY)).to.deep.include({ name: 'default', replicas: 4 });
  });

  it('do not change an existing pool of the same name', async () => {
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

  it('include just a pool if growth is disabled', async () => {
    await make({ maxReplicas: 4 });
    expect([env(), operations.pools.get(KEY)?.replicas]).to.deep.equal([undefined, 4]);
  });

  describe('for the code interpreter', () => {
    const both = (): readonly unknown[] => [
      operations.records.envs.records.get(`team-default/${INTERPRETER}`)?.groups[0],
      operations.pools.get(`team-default/${INTERPRETER}`)?.replicas,
    ];
    const isMade = (): void => {
      const [group, replicas] = both();
      expect(replicas).to.equal(0);
      expect(group)
        .to.deep.include({ name: INTERPRETER, enabled: true, minReplicas: 0, maxReplicas: 16 })
        .and.have.nested.property('scaleUpPolicy.mode', 'Moderate');
    };

    it('include an env whose only member rests at no replicas and grows with demand', async () => {
      await make();
      isMade();
      isWhole();
    });

    it('are the same next to a default pool without growth', async () => {
      await make({ maxReplicas: 4 });
      isMade();
    });

    it('are completed if an interrupted first start left an env without a member', async () => {
      await make({ most: 0 });
      await operations.createEnv(CALLER, {
        name: INTERPRETER,
        mode: 'WarmPool',
        templateRef: { name: INTERPRETER },
        overrides: {},
        labels: {},
        annotations: {},
      });
      await make();
      isMade();
    });

    for (const [why, sizes, terms] of [
      ['its most is 0', { most: 0 }, {}],
      ['its template is missing', {}, { templates: [] }],
      ['the quota has room for one pool only', {}, { quota: 1 }],
    ] as const)
      it(`are omitted if ${why}`, async () => {
        await make(sizes, terms);
        expect(both()).to.deep.equal([undefined, undefined]);
        isWhole();
      });
  });

  it('give recreated members the sizes of every growing pool', () => {
    const owner = { namespace: 'team-default', team: 'default', user: 'default' };
    const [ofDefault, ofInterpreter] = [
      { owner, name: 'default', replicas: 4, maxReplicas: 64 },
      { owner, name: INTERPRETER, replicas: 0, maxReplicas: 16 },
    ];
    expect(firstMembers(configOf())).to.deep.equal([ofDefault, ofInterpreter]);
    expect(firstMembers(configOf({ maxReplicas: 4 }))).to.deep.equal([ofInterpreter]);
    expect(firstMembers(configOf({ most: 0 }))).to.deep.equal([ofDefault]);
  });

  describe('complete the work of an interrupted start', () => {
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

    it('without a member', async () => {
      await make();
      isWhole();
    });

    it('with an unchanged group', async () => {
      await operations.addMember(CALLER, 'default', {
        name: 'default',
        replicas: 4,
        config: { minReplicas: 4, maxReplicas: 64 },
      });
      await make();
      isWhole();
    });

    it('with a listed member, whose pool its leader creates', async () => {
      await operations.addMember(CALLER, 'default', {
        name: 'default',
        replicas: 4,
        config: { minReplicas: 4, maxReplicas: 64 },
      });
      const { pools } = operations.records;
      await operations.settled();
      for (const record of pools.records.values()) await pools.remove(record);
      await make();
      isWhole();
    });
  });
});
