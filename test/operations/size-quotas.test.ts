import { MemoryTemplates } from '../support/fakes/memory-templates.ts';
import { expect } from 'chai';
import { VolumeDirectories } from '../../src/embedded/driver/volume-directories.ts';
import { Refusal } from '../../src/model/refusals.ts';
import { SandboxTemplateSchema, type TemplateRecord } from '../../src/model/templates/template.ts';
import { createPool } from '../../src/actors/pool/commands/create-pool.ts';
import { instanceTypes } from '../../src/services/templates/instance-types.ts';
import { PoolRenewal } from '../../src/actors/pool/commands/pool-renewal.ts';
import { syncPool } from '../../src/actors/pool/commands/sync-pool.ts';
import { TemplateCatalog } from '../../src/actors/pool/template-catalog.ts';
import { updatePool } from '../../src/actors/pool/commands/update-pool.ts';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { ALICE } from '../support/builders/instance-orders.ts';
import { noEnvs } from '../support/fakes/memory-envs.ts';
import { limitsOf } from '../support/fakes/memory-quotas.ts';
import { noPullSecrets } from '../support/fakes/no-pull-secrets.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { rejection } from '../support/harness/rejection.ts';

const GIB = 2 ** 20; // in KiB

const aTemplate = (version: number, cpu: string, memory: string): TemplateRecord => ({
  name: 't',
  revision: String(version),
  version: String(version),
  createdAt: 1,
  document: SandboxTemplateSchema.parse({
    apiVersion: 'sandpool.dev/v1alpha1',
    kind: 'SandboxTemplate',
    metadata: { name: 't' },
    spec: { containers: [{ name: 'main', image: 'host', resources: { limits: { cpu, memory } } }] },
  }),
});

/** A tenant with one pool of no replicas; `t` has a core and a GiB. */
const aWorld = async () => {
  const world = await aSupervisor({ pool: { replicas: 0 } });
  let stored = aTemplate(1, '1', '1Gi');
  const templates = new TemplateCatalog({
    templates: Object.assign(new MemoryTemplates(), {
      get: async () => {
        templates.learn({ kind: 'put', record: stored });
        return stored;
      },
    }),
    clock: world.clock,
  });
  templates.learn({ kind: 'put', record: stored });
  const limits = { cpu: 4_000, memory: 4 * GIB };
  let serial = 0;
  const deps = {
    ...world,
    templates,
    types: instanceTypes(undefined),
    volumes: new VolumeDirectories([]),
    pullSecrets: noPullSecrets,
    quotaLimits: { of: () => limitsOf(limits).of() },
    newUid: () => `u${(serial += 1)}`,
    background: () => undefined,
    envs: noEnvs(world.clock),
  };
  const renewal = new PoolRenewal({ ...deps, log: quietLog });
  await world.pools.watch(({ record }) => {
    renewal.consider(record.uid);
  });
  return {
    ...world,
    limits,
    create: (name: string, replicas: number, more: object = {}) =>
      createPool(deps)(alice, {
        name,
        source: { templateName: 't', ...more },
        labels: {},
        annotations: {},
        replicas,
      }),
    update: (change: object) => updatePool(deps)(alice, 'p', change),
    sync: () => syncPool(deps)(alice, 'p'),
    edit: (version: number, cpu: string, memory: string) => {
      stored = aTemplate(version, cpu, memory);
      templates.learn({ kind: 'put', record: stored });
      renewal.template('t');
    },
    record: () => world.pools.records.get('u1')!,
    used: async () => {
      const { cpu, memory } = await world.coordination.used(ALICE);
      return [cpu, memory / GIB];
    },
  };
};

const refusalOf = async (work: Promise<unknown>): Promise<unknown> => {
  const error = await rejection(work);
  return error instanceof Refusal ? [error.code, error.detail?.['resource']] : error;
};

describe('the quota of cpu and memory', () => {
  it('counts the limits of an instance times the replicas, and refuses a pool beyond it', async () => {
    const { create, used, limits } = await aWorld();
    await create('p', 3);
    expect(await used()).to.deep.equal([3_000, 3]);

    expect(await refusalOf(create('more', 2))).to.deep.equal(['QUOTA_EXCEEDED', 'cpu']);
    limits.cpu = 100_000;
    expect(await refusalOf(create('more', 2))).to.deep.equal(['QUOTA_EXCEEDED', 'memory']);
    expect(await used()).to.deep.equal([3_000, 3]);

    await create('more', 1);
    expect(await used()).to.deep.equal([4_000, 4]);
  });

  it('applies to a pool that grows, in number or size, and is given back', async () => {
    const { create, update, used, record } = await aWorld();
    await create('p', 2);

    expect(await refusalOf(update({ replicas: 5 }))).to.deep.equal(['QUOTA_EXCEEDED', 'cpu']);
    expect(await refusalOf(update({ source: { cpu: '2500m' } }))).to.deep.equal([
      'QUOTA_EXCEEDED',
      'cpu',
    ]);
    expect(await refusalOf(update({ source: { memory: '3Gi' } }))).to.deep.equal([
      'QUOTA_EXCEEDED',
      'memory',
    ]);
    expect([await used(), record().replicas, record().definition.cpu]).to.deep.equal([
      [2_000, 2],
      2,
      '1',
    ]);

    await update({ source: { cpu: '2', memory: '2Gi' } });
    expect(await used()).to.deep.equal([4_000, 4]);
    await update({ replicas: 1 });
    expect(await used()).to.deep.equal([2_000, 2]);
  });

  it('delays a new template version that would exceed it, until there is room', async () => {
    const { create, edit, used, record, limits, clock } = await aWorld();
    await create('p', 2);
    edit(2, '4', '1Gi');
    await eventually(() => record().unresolved !== undefined, 'it says so');
    expect([
      record().unresolved?.reason,
      record().templateVersion,
      record().definition.cpu,
    ]).to.deep.equal(['QuotaExceeded', '1', '1']);
    expect(await used()).to.deep.equal([2_000, 2]);

    limits.cpu = 8_000;
    clock.advance(60_000);
    await eventually(() => record().templateVersion === '2', 'it follows');
    expect(record().unresolved).to.equal(undefined);
    expect(await used()).to.deep.equal([8_000, 2]); // reserved before the write
  });

  it('refuses a sync that would exceed it', async () => {
    const { create, update, edit, sync, used, record } = await aWorld();
    await create('p', 2);
    await update({ updateStrategy: { autoUpdate: false } });
    edit(2, '1', '8Gi');

    expect(await refusalOf(sync())).to.deep.equal(['QUOTA_EXCEEDED', 'memory']);
    expect([await used(), record().templateVersion]).to.deep.equal([[2_000, 2], '1']);
    edit(3, '500m', '1Gi');
    await sync();
    expect([await used(), record().templateVersion]).to.deep.equal([[1_000, 2], '3']);
  });

  it('is given back with the pool', async () => {
    const { create, used, pools, record } = await aWorld();
    await create('p', 2);
    await pools.remove(record());
    await eventually(() => pools.records.get('u1') === undefined, 'it is gone');
    let left: unknown;
    await eventually(() => {
      void used().then((amounts) => {
        left = amounts;
      });
      return JSON.stringify(left) === '[0,0]';
    }, 'all is given back');
  });
});
