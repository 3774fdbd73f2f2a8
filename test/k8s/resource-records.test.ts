import { expect } from 'chai';
import { EnvMirror } from '../../src/actors/runtime/record-mirror.ts';
import { KubernetesRecordStore } from '../../src/k8s/records/record-store.ts';
import type { EnvRecord } from '../../src/model/envs/env.ts';
import { SandboxTemplateSchema } from '../../src/model/templates/template.ts';
import { QuotaLimits } from '../../src/actors/pool/commands/quota-limits.ts';
import { TemplateCatalog } from '../../src/actors/pool/template-catalog.ts';
import { eventually } from '../support/harness/eventually.ts';
import { ALICE } from '../support/builders/instance-orders.ts';
import { grantsAll } from '../support/fakes/grants-all.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { testSeals } from '../support/builders/test-seals.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { MemoryApi } from './a-memory-api.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

const anEnv = (name: string): Omit<EnvRecord, 'revision'> => ({
  uid: `env-${name}`,
  name,
  owner: ALICE,
  createdAt: 1_700_000_000_000,
  labels: {},
  annotations: {},
  templateRef: { name: 'small' },
  mode: 'WarmPool',
  overrides: {},
  members: [],
  groups: [],
  scaling: {},
  conditions: [],
  deleting: false,
});
const place = (name: string): string =>
  `/apis/sandpool.dev/v1alpha1/namespaces/${ALICE.namespace}/sandboxenvs/${name}`;

describe("a replica's copies of envs, templates and limits on Kubernetes", () => {
  const aReplica = async (api: MemoryApi) => {
    const records = new KubernetesRecordStore({
      metrics: silentMetrics,
      api: api.server,
      log: quietLog,
      seals: testSeals,
      now: () => 0,
      lookups: {
        instanceType: () => undefined,
        check: () => undefined,
        teamOf: () => ALICE.team,
        clusterId: 'local',
      },
      grants: grantsAll,
      outdated: () => undefined,
    });
    const envs = new EnvMirror({ envs: records.envs, clock: new TestClock(), log: quietLog });
    await envs.start();
    return { records, envs, uid: (name: string) => envs.named(ALICE.namespace, name)?.uid };
  };

  it('keep an env that is created during a read', async () => {
    const api = new MemoryApi();
    const [here, there] = [await aReplica(api), await aReplica(api)];
    const read = api.holdRead(place('new'));
    const asked = here.envs.refresh(`${ALICE.namespace}/new`);
    await read.begun;

    const { uid } = await there.records.envs.create(anEnv('new'));
    await eventually(() => here.uid('new') === uid, 'the watch tells of it');
    read.letGo();
    await asked;

    expect(here.uid('new')).to.equal(uid);
    await Promise.all([here.records.stop(), there.records.stop()]);
  });

  it('show the current env after each read or write, even with a delayed watch', async () => {
    const api = new MemoryApi();
    const [here, there] = [await aReplica(api), await aReplica(api)];
    api.hold('sandboxenvs');
    const first = await there.records.envs.create(anEnv('a'));
    expect([here.uid('a'), there.uid('a')]).to.deep.equal([undefined, first.uid]);
    await here.envs.lookUp(`${ALICE.namespace}/a`);
    expect(here.uid('a')).to.equal(first.uid);

    await there.envs.change(first.uid, (record) => ({ ...record, labels: { written: 'yes' } }));
    expect(there.envs.get(first.uid)?.labels).to.deep.equal({ written: 'yes' });
    expect(here.envs.get(first.uid)?.labels).to.deep.equal({});
    await here.envs.refresh(`${ALICE.namespace}/a`);
    expect(here.envs.get(first.uid)?.labels).to.deep.equal({ written: 'yes' });

    await there.envs.remove(first.uid, () => true);
    expect([here.uid('a'), there.uid('a')]).to.deep.equal([first.uid, undefined]);
    await here.envs.refresh(`${ALICE.namespace}/a`);
    expect(here.uid('a')).to.equal(undefined);

    api.letGo();
    const last = await there.records.envs.create(anEnv('z'));
    await eventually(
      () => here.uid('z') === last.uid && there.uid('z') === last.uid,
      'the watch is through',
    );
    expect([here.uid('a'), there.uid('a')]).to.deep.equal([undefined, undefined]);
    await Promise.all([here.records.stop(), there.records.stop()]);
  });

  it('reuse an object from a list at the same revision', async () => {
    const api = new MemoryApi();
    const { records, envs } = await aReplica(api);
    const { uid } = await records.envs.create(anEnv('a'));
    await eventually(() => envs.get(uid) !== undefined, 'the watch tells of it');
    const [listed] = await records.envs.list();
    expect(listed).to.equal(envs.get(uid)); // the very same
    await records.stop();
  });

  it('show the latest limits read or written, and the defaults once a read finds none', async () => {
    const api = new MemoryApi();
    const replicaOf = async () => {
      const [{ records }, clock] = [await aReplica(api), new TestClock()];
      const limits = new QuotaLimits({
        quotas: records.quotas,
        clock,
        defaults: { sandboxes: 10, pools: 5, replicas: 20 },
      });
      await limits.start();
      return { records, limits, clock };
    };
    const [here, there] = [await replicaOf(), await replicaOf()];
    api.hold('userquotas');
    await there.limits.set(ALICE, { sandboxes: 3 });
    expect([here.limits.of(ALICE).sandboxes, there.limits.of(ALICE).sandboxes]).to.deep.equal([
      10, 3,
    ]);
    expect((await here.limits.read(ALICE)).sandboxes).to.equal(3);
    expect(here.limits.of(ALICE).sandboxes).to.equal(3);

    const [path = ''] = [...api.objects.keys()].filter((at) => at.includes('userquotas'));
    const old = api.holdRead(path);
    here.clock.advance(250);
    const read = here.limits.read(ALICE);
    await old.begun;
    await here.limits.set(ALICE, { sandboxes: 9 });
    old.letGo();
    await read;
    expect(here.limits.of(ALICE).sandboxes).to.equal(9);

    api.remove(path);
    here.clock.advance(250);
    await here.limits.read(ALICE);
    expect(here.limits.of(ALICE).sandboxes).to.equal(10);
    api.letGo();
    await Promise.all([here.records.stop(), there.records.stop()]);
  });

  it('drop a template that is deleted during a read', async () => {
    const api = new MemoryApi();
    const { records } = await aReplica(api);
    const catalog = new TemplateCatalog({ templates: records.templates, clock: new TestClock() });
    await catalog.start();
    const made = await records.templates.create({
      name: 'late',
      version: '1',
      createdAt: 1,
      document: SandboxTemplateSchema.parse({
        apiVersion: 'sandpool.dev/v1alpha1',
        kind: 'SandboxTemplate',
        metadata: { name: 'late' },
        spec: { containers: [{ name: 'main', image: 'busybox' }] },
      }),
    });
    expect(catalog.get('late')).to.deep.equal(made);
    const [path = ''] = [...api.objects.keys()].filter((at) => at.endsWith('/late'));
    const held = api.holdRead(path);
    const reading = catalog.refresh('late');
    await held.begun;
    await records.templates.remove(made);
    held.letGo();
    await reading;
    expect(catalog.get('late')).to.equal(undefined);
    await records.stop();
  });
});
