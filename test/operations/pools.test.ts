import { MemoryTemplates } from '../support/fakes/memory-templates.ts';
import { expect } from 'chai';
import { tmpdir } from 'node:os';
import { DefinitionRefused } from '../../src/contracts/sandbox-driver.ts';
import type { RegistryCredentials } from '../../src/model/pools/pool-source.ts';
import { Refusal } from '../../src/model/refusals.ts';
import { SandboxTemplateSchema, type TemplateRecord } from '../../src/model/templates/template.ts';
import { createPool } from '../../src/actors/pool/commands/create-pool.ts';
import { instanceTypes } from '../../src/services/templates/instance-types.ts';
import { PoolRenewal } from '../../src/actors/pool/commands/pool-renewal.ts';
import { previewPoolSync, syncPool } from '../../src/actors/pool/commands/sync-pool.ts';
import { TemplateCatalog } from '../../src/actors/pool/template-catalog.ts';
import { updatePool } from '../../src/actors/pool/commands/update-pool.ts';
import { VolumeDirectories } from '../../src/embedded/driver/volume-directories.ts';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { noEnvs } from '../support/fakes/memory-envs.ts';
import { limitsOf } from '../support/fakes/memory-quotas.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { rejection } from '../support/harness/rejection.ts';

const aTemplate = (version: number, idleTimeout: string): TemplateRecord => ({
  name: 't',
  revision: String(version),
  version: String(version),
  createdAt: 1,
  document: SandboxTemplateSchema.parse({
    apiVersion: 'sandpool.dev/v1alpha1',
    kind: 'SandboxTemplate',
    metadata: { name: 't' },
    spec: { containers: [{ name: 'main', image: 'host' }], idleTimeout },
  }),
});
const SMALL = {
  name: 'small',
  showName: 'Small',
  description: '',
  maxMultiplier: 2,
  extensions: {},
  baseResources: { requests: {}, limits: { cpu: '1', memory: '256Mi' } },
};

/** A supervisor with a template `t`, whose edits reach the pools as in a daemon. */
const aWorld = async (
  options: { readonly types?: boolean; readonly volumes?: readonly string[] } = {},
) => {
  const world = await aSupervisor({ pool: { replicas: 0 } });
  const { pools, clock, driver } = world;
  const first = aTemplate(1, '1m');
  let stored: TemplateRecord | undefined = first;
  // What a store reads it reports.
  const store = Object.assign(new MemoryTemplates(), {
    get: async (name: string): Promise<TemplateRecord | undefined> => {
      if (name === 't' && stored) templates.learn({ kind: 'put', record: stored });
      return name === 't' ? stored : undefined;
    },
  });
  const templates = new TemplateCatalog({ templates: store, clock });
  templates.learn({ kind: 'put', record: first });
  const kept: (readonly RegistryCredentials[])[] = [];
  const pullSecrets = {
    keep: async (_pool: unknown, registries: readonly RegistryCredentials[]) => {
      kept.push(registries);
    },
    forget: async () => {
      kept.push([]);
    },
  };
  const deps = {
    ...world,
    pools,
    templates,
    types: instanceTypes(options.types ? [SMALL] : undefined),
    volumes: new VolumeDirectories(
      (options.volumes ?? []).map((claimName) => ({
        namespace: alice.namespace,
        claimName,
        path: tmpdir(),
      })),
    ),
    driver,
    pullSecrets,
    quotaLimits: limitsOf({}),
    newUid: () => 'u1',
    background: () => undefined,
    envs: noEnvs(world.clock),
  };
  const renewal = new PoolRenewal({ ...deps, log: quietLog });
  await pools.watch(({ record }) => {
    renewal.consider(record.uid);
  });
  return {
    ...deps,
    kept,
    renewal,
    create: (more: object = {}) =>
      createPool(deps)(alice, {
        name: 'p',
        source: { templateName: 't' },
        labels: {},
        annotations: {},
        replicas: 1,
        ...more,
      }),
    update: (change: object) => updatePool(deps)(alice, 'p', change),
    sync: () => syncPool(deps)(alice, 'p'),
    preview: () => previewPoolSync(deps)(alice, 'p'),
    /** As an admin's change of the template; `seen`: this replica knows. */
    edit: (version: number, idleTimeout: string, seen = true) => {
      stored = aTemplate(version, idleTimeout);
      if (!seen) return;
      templates.learn({ kind: 'put', record: stored });
      renewal.template('t');
    },
    removeTemplate: () => {
      stored = undefined;
      templates.learn({ kind: 'gone', record: aTemplate(2, '1m') });
    },
    record: () => pools.records.get('u1')!,
  };
};

const refusalOf = async (work: Promise<unknown>): Promise<unknown> => {
  const error = await rejection(work);
  return error instanceof Refusal ? [error.code, error.detail?.['field']] : error;
};

describe('a pool', () => {
  it('follows its template automatically, and never back to an older version', async () => {
    const { create, edit, record } = await aWorld();
    await create();
    const { updateRevision } = record();

    edit(2, '2m');
    await eventually(() => record().templateVersion === '2', 'the new version');
    expect(record().definition.idleTimeoutMs).to.equal(120_000);
    expect(record().updateRevision).to.not.equal(updateRevision);
    const { revision } = record();
    edit(1, '1m');
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    expect(record()).to.include({ templateVersion: '2', revision });
  });

  it('keeps its version if a new one cannot be rendered, reports it once, and applies the rest', async () => {
    const { create, edit, record, driver, supervisor, sync, clock } = await aWorld();
    await create();
    const { definition, updateRevision } = record();
    let refused = 120_000;
    driver.check = ({ idleTimeoutMs }) => {
      if (idleTimeoutMs === refused) throw new DefinitionRefused('spec.idleTimeout: not here');
    };
    const resolution = () =>
      supervisor.pools.get('u1')?.conditions.find(({ type }) => type === 'TemplateResolved');

    edit(2, '2m');
    await eventually(() => resolution()?.status === 'False', 'it says so');
    expect(resolution()).to.deep.include({
      reason: 'SourceInvalid',
      message: "templateName: this daemon can't run the template: spec.idleTimeout: not here",
    });
    expect(record()).to.deep.include({ definition, updateRevision, templateVersion: '1' });
    expect(record().unresolved?.templateVersion).to.equal('2');
    expect(await refusalOf(sync())).to.deep.equal(['INVALID_ARGUMENT', 'templateName']);

    refused = 180_000;
    edit(3, '3m');
    await eventually(
      () => record().unresolved?.templateVersion === '3',
      'the next one can not be either',
    );
    const { revision } = record();
    clock.advance(60_000);
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    expect(record().revision, 'nothing new to say').to.equal(revision);

    refused = 0;
    clock.advance(60_000);
    await eventually(() => record().templateVersion === '3', 'it is tried again');
    expect(record()).to.not.have.property('unresolved');
    expect(resolution()).to.include({ status: 'True', reason: 'Resolved', message: '' });
  });

  it('does not take a new version whose volume is missing', async () => {
    const { create, edit, record, volumes } = await aWorld({ volumes: ['data'] });
    await create({
      source: {
        templateName: 't',
        overrides: { volumes: [{ claimName: 'data', mountPath: '/data' }] },
      },
    });

    volumes.list = async () => [];
    edit(2, '2m');
    await eventually(() => record().unresolved !== undefined, 'it says so');
    expect(record().unresolved?.message).to.equal(
      'overrides.volumes[0].claimName: must be one of GET /volumes',
    );
    expect(record().templateVersion).to.equal('1');
  });

  it('without autoUpdate keeps its version until a sync', async () => {
    const { create, edit, record, update, sync } = await aWorld();
    await create({ updateStrategy: { autoUpdate: false } });
    edit(2, '2m');
    await update({ source: { cpu: '500m' } });
    const { definition } = record();
    expect([
      definition.idleTimeoutMs,
      definition.cpu,
      record().source.cpu,
      record().unrendered,
    ]).to.deep.equal([60_000, '1', '500m', true]);

    const { record: synced } = await sync();
    expect(synced.definition).to.include({ idleTimeoutMs: 120_000, cpu: '500m' });
    expect(synced)
      .to.include({ templateVersion: '2', replicas: 1 })
      .and.not.have.property('unrendered');
  });

  it('catches up when autoUpdate is turned on', async () => {
    const { create, edit, record, update } = await aWorld();
    await create({ updateStrategy: { autoUpdate: false } });
    await update({ source: { memory: '64Mi' } });
    edit(2, '2m');

    await update({ updateStrategy: { autoUpdate: true } });
    await eventually(() => record().templateVersion === '2', 'the new version');
    expect(record().definition).to.include({ memory: '64Mi', idleTimeoutMs: 120_000 });
    expect(record().updateStrategy).to.deep.equal({ autoUpdate: true, maxUnavailable: '25%' });
  });

  it('shows a preview of a sync, without a write', async () => {
    const { create, edit, record, preview, sync } = await aWorld();
    await create({ updateStrategy: { autoUpdate: false } });
    const before = record();
    edit(7, '7m', false);

    const { spec, version } = await preview();
    expect([spec.idleTimeout, version]).to.deep.equal(['7m', '7']);
    expect(record()).to.equal(before);
    expect((await sync()).record).to.deep.include({ templateVersion: '7' });
    expect(record().definition.idleTimeoutMs).to.equal(420_000);
    const { revision } = record();
    await sync();
    expect(record().revision).to.equal(revision);
  });

  it('does not change by an empty or identical patch', async () => {
    const { create, record, update } = await aWorld();
    await create({
      source: { templateName: 't', overrides: { image: 'host' } },
      labels: { a: 'b' },
    });
    const { revision } = record();
    for (const change of [
      {},
      { replicas: 1 },
      {
        labels: { a: 'b' },
        source: { overrides: { image: 'host' } },
        updateStrategy: { autoUpdate: true },
      },
    ])
      await update(change);
    expect(record().revision).to.equal(revision);
  });

  it('keeps a size set by hand that was not granted, until the next change', async () => {
    const { create, record, update, supervisor } = await aWorld();
    await create({ replicas: 1 });
    await supervisor.pools.change(record().uid, (current) => ({
      ...current,
      requested: 9,
      minReplicas: 2,
    }));

    await update({ labels: { a: 'b' } });
    expect(record()).to.deep.include({ replicas: 1, requested: 9, labels: { a: 'b' } });
    await update({ replicas: 3 });
    expect(record()).to.deep.include({ replicas: 3 }).and.not.have.property('requested');
  });

  it('stores registry passwords separately, and can change and remove them', async () => {
    const { create, record, update, kept } = await aWorld();
    const registries = [{ registry: 'r.example', username: 'u', password: 'hunter2' }];
    await create({ registries });
    expect(kept).to.deep.equal([registries, registries]); // again once the pool is there
    expect(record().source.overrides).to.deep.equal({ imagePullSecretConfigured: true });
    expect(record().definition.imagePullSecret).to.equal(true);
    expect(JSON.stringify(record())).to.not.contain('hunter2');

    await update({ registries: [{ ...registries[0]!, password: 'other' }] });
    expect(kept.at(-1)).to.deep.equal([{ ...registries[0]!, password: 'other' }]);
    await update({ registries: [] });
    expect(kept.at(-1)).to.deep.equal([]);
    expect(record().definition).to.not.have.property('imagePullSecret');
  });

  it('keeps its registry passwords if a change is refused', async () => {
    const { create, update, kept, coordination } = await aWorld();
    await create();
    coordination.reserve = async () => false;
    expect(
      await refusalOf(
        update({
          replicas: 2,
          registries: [{ registry: 'r.example', username: 'u', password: 'new' }],
        }),
      ),
    ).to.deep.equal(['QUOTA_EXCEEDED', undefined]);
    expect(
      await refusalOf(
        update({
          ifMatch: new Set(['old']),
          registries: [{ registry: 'r.example', username: 'u', password: 'new' }],
        }),
      ),
    ).to.deep.equal(['PRECONDITION_FAILED', undefined]);
    expect(kept).to.deep.equal([]);
  });

  it('ties its registry passwords to its life, even if that fails at first', async () => {
    const { create, pullSecrets, clock } = await aWorld();
    const registries = [{ registry: 'r.example', username: 'u', password: 'hunter2' }];
    let calls = 0;
    pullSecrets.keep = async () => {
      if (++calls > 1 && calls < 4) throw new Error('away');
    };
    await create({ registries });
    await eventually(() => calls === 2, 'it failed');
    for (const call of [3, 4]) {
      clock.advance(2_000);
      await eventually(() => calls === call, `call ${call}`);
    }
    clock.advance(60_000);
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
    expect(calls).to.equal(4);
  });

  it('takes its size from the bounds by default', async () => {
    for (const [asked, replicas] of [
      [{}, 1],
      [{ minReplicas: 3 }, 3],
      [{ maxReplicas: 0 }, 0],
    ] as const) {
      const { create } = await aWorld();
      expect((await create({ replicas: undefined, ...asked })).record.replicas).to.equal(replicas);
    }
  });

  for (const [what, change, refusal] of [
    ['nothing to run', { source: { cpu: '1' } }, ['INVALID_ARGUMENT', 'templateName']],
    [
      'an unknown template',
      { source: { templateName: 'nothing' } },
      ['SANDBOX_TEMPLATE_NOT_FOUND', undefined],
    ],
    [
      'an instance type where there are none',
      { source: { templateName: 't', instanceType: 'small' } },
      ['FEATURE_DISABLED', 'instanceType'],
    ],
    [
      'volumes where there are none',
      {
        source: {
          templateName: 't',
          overrides: { volumes: [{ claimName: 'c', mountPath: '/c' }] },
        },
      },
      ['FEATURE_DISABLED', 'overrides.volumes'],
    ],
    ['fewer replicas than its least', { minReplicas: 2 }, ['INVALID_ARGUMENT', 'replicas']],
    [
      'more replicas than its most',
      { replicas: 3, maxReplicas: 2 },
      ['INVALID_ARGUMENT', 'replicas'],
    ],
    [
      'bounds that contradict each other',
      { minReplicas: 3, maxReplicas: 2 },
      ['INVALID_ARGUMENT', 'minReplicas'],
    ],
  ] as const) {
    it(`is refused ${what}`, async () => {
      const { create, pools } = await aWorld();
      expect(await refusalOf(create(change))).to.deep.equal(refusal);
      expect(pools.records.has('u1')).to.equal(false);
    });
  }

  it('is refused an unknown instance type and a multiplier above the maximum', async () => {
    const { create, update, record } = await aWorld({ types: true });
    expect(
      await refusalOf(create({ source: { templateName: 't', instanceType: 'large' } })),
    ).to.deep.equal(['INVALID_ARGUMENT', 'instanceType']);
    await create({ source: { templateName: 't', instanceType: 'small', multiplier: 2 } });
    expect(record().definition).to.include({ cpu: '2', memory: '512Mi' });
    expect(await refusalOf(update({ source: { multiplier: 3 } }))).to.deep.equal([
      'INVALID_ARGUMENT',
      'multiplier',
    ]);
    expect(record().definition.cpu).to.equal('2');
  });

  it('is refused more than the machine has, with the field that requests it', async () => {
    const { create, driver } = await aWorld({ types: true });
    driver.check = ({ containers: [container] }) => {
      if ((container?.cpuCores ?? 0) > 0.5)
        throw new DefinitionRefused(
          'spec.containers[0].resources.limits.cpu: this machine has 0.5',
        );
    };
    const vast = { limits: { cpu: '64' } };
    for (const [source, field] of [
      [{ templateName: 't', cpu: '64' }, 'cpu'],
      [{ templateName: 't', inlineResources: vast }, 'inlineResources.limits.cpu'],
      [
        { templateName: 't', inlineResources: { requests: { cpu: '64' } } },
        'inlineResources.requests.cpu',
      ],
      [{ templateName: 't', instanceType: 'small' }, 'instanceType'],
      [{ templateName: 't', instanceType: 'small', multiplier: 2 }, 'multiplier'],
      [
        { template: { containers: [{ name: 'main', image: 'host', resources: vast }] } },
        'template.containers[0].resources.limits.cpu',
      ],
      [{ templateName: 't' }, 'templateName'],
    ] as const)
      expect(await refusalOf(create({ source })), JSON.stringify(source)).to.deep.equal([
        'INVALID_ARGUMENT',
        field,
      ]);
  });

  it('can be changed after its template is gone, if nothing has to be rendered', async () => {
    const { create, update, record, removeTemplate } = await aWorld();
    await create();
    removeTemplate();
    await update({ labels: { a: 'b' } });
    expect(record().labels).to.deep.equal({ a: 'b' });
    expect(await refusalOf(update({ source: { cpu: '2' } }))).to.deep.equal([
      'SANDBOX_TEMPLATE_NOT_FOUND',
      undefined,
    ]);
  });
});
