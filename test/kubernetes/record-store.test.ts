import { expect } from 'chai';
import { stringify } from 'yaml';
import type { ApiServer } from '../../src/k8s/api/api-calls.ts';
import { DefinitionRefused } from '../../src/contracts/sandbox-driver.ts';
import type { RecordChange } from '../../src/contracts/record-store.ts';
import type { KubernetesRecordStore } from '../../src/k8s/records/record-store.ts';
import type { ResourceObject } from '../../src/k8s/api/resource.ts';
import { Seals, type SealedContent } from '../../src/k8s/api/seals.ts';
import type { ApiKeyRecord } from '../../src/model/api-key.ts';
import {
  CLOSED_BREAKER,
  DEFAULT_UPDATE_STRATEGY,
  type PoolRecord,
} from '../../src/model/pools/pool.ts';
import { renderDefinition } from '../../src/model/pools/render-definition.ts';
import type { TemplateRecord } from '../../src/model/templates/template.ts';
import { specOfVersion } from '../../src/model/templates/template-versions.ts';
import { updateRevisionOf } from '../../src/model/pools/update-revision.ts';
import { recordStoreSuite } from '../contracts/record-store.ts';
import { eventually } from '../support/harness/eventually.ts';
import { aStoredPool } from '../support/builders/a-pool.ts';
import { rejection } from '../support/harness/rejection.ts';
import { othersSeals, testSeals } from '../support/builders/test-seals.ts';
import { onTheCluster } from '../support/cluster/shared-cluster.ts';
import { anApiOf, aRecordStore, prepareForRecords, removeAllRecords } from './a-record-store.ts';
import { sampled } from '../support/harness/sampled.ts';
import { withLaterDefinitions } from '../support/cluster/later-definitions.ts';

describe('records as custom resources', function () {
  const cluster = onTheCluster();
  let admin: ApiServer;

  before(async () => {
    await prepareForRecords(cluster());
    admin = await anApiOf(cluster(), 'admin');
  });
  beforeEach(() => removeAllRecords(admin));
  after(async () => {
    await removeAllRecords(admin);
    await admin.close();
  });

  sampled(() => recordStoreSuite('the API server', () => aRecordStore(cluster())));

  describe('next to kubectl', () => {
    const closes: (() => Promise<void>)[] = [];
    afterEach(async () => {
      for (const close of closes.splice(0)) await close();
    });

    interface Replica {
      readonly store: KubernetesRecordStore;
      readonly pools: Map<string, PoolRecord>;
      readonly templates: Map<string, TemplateRecord>;
    }

    const mirrorOf =
      <T extends { readonly name: string }>(mirror: Map<string, T>) =>
      ({ kind, record }: RecordChange<T>): void => {
        if (kind === 'put') mirror.set(record.name, record);
        else mirror.delete(record.name);
      };
    const aReplica = async (part: Parameters<typeof aRecordStore>[1] = {}): Promise<Replica> => {
      const { store, close } = await aRecordStore(cluster(), part);
      closes.push(close);
      const replica = {
        store,
        pools: new Map<string, PoolRecord>(),
        templates: new Map<string, TemplateRecord>(),
      };
      await store.start();
      await store.templates.watch(mirrorOf(replica.templates));
      await store.pools.watch(mirrorOf(replica.pools));
      return replica;
    };
    const apply = async (...objects: readonly object[]): Promise<void> => {
      const { exitCode, stderr } = await cluster().kubectlAs(
        'admin',
        ['apply', '-f', '-'],
        objects.map((object) => stringify(object)).join('---\n'),
      );
      expect([exitCode, stderr.replaceAll(/^Warning.*\n/gm, '')]).to.deep.equal([0, '']);
    };
    const template = (name: string, container: object = {}): object => ({
      apiVersion: 'sandpool.dev/v1alpha1',
      kind: 'SandboxTemplate',
      metadata: { name },
      spec: { containers: [{ name: 'main', image: 'busybox', ...container }] },
    });
    const pool = (name: string, spec: object = {}, metadata: object = {}): object => ({
      apiVersion: 'sandpool.dev/v1alpha1',
      kind: 'SandboxPool',
      metadata: { name, namespace: 'alpha', ...metadata },
      spec: { templateName: 'small', ...spec },
    });
    const object = async (kind: string, name: string) =>
      JSON.parse(
        await cluster().kubectl('get', kind, name, '-n', 'alpha', '-o', 'json'),
      ) as ResourceObject;
    const ready = (kind: string, name: string): Promise<string> =>
      cluster().kubectl(
        'get',
        kind,
        name,
        '-n',
        'alpha',
        '-o',
        'jsonpath={range .status.conditions[?(@.type=="Ready")]}{.status} {.reason} {.message}{end}',
      );

    it('include templates and pools with their defaults, the same on every replica', async () => {
      const [one, two] = [await aReplica(), await aReplica()];

      await apply(
        pool('p', { replicas: 3, labels: { a: 'b' } }),
        template('small'),
        pool(
          'q',
          {},
          { annotations: { 'sandpool.dev/team': 'alpha', 'sandpool.dev/user': 'bob' } },
        ),
      );
      await eventually(
        () => [one, two].every(({ pools, templates }) => pools.size === 2 && templates.size === 1),
        'both replicas show all',
      );

      const small = one.templates.get('small');
      expect(small).to.deep.include({ version: '1', document: { ...template('small') } });
      const definition = renderDefinition(
        (small?.document ?? (template('small') as TemplateRecord['document'])).spec,
      );
      const { uid, revision, createdAt, ...rest } = one.pools.get('p') ?? aPoolRecord();
      expect(rest).to.deep.equal({
        name: 'p',
        owner: { namespace: 'alpha', team: 'alpha', user: 'default' },
        replicas: 3,
        source: { templateName: 'small' },
        updateStrategy: DEFAULT_UPDATE_STRATEGY,
        templateVersion: '1',
        labels: { a: 'b' },
        annotations: {},
        definition,
        updateRevision: updateRevisionOf(definition),
        breaker: CLOSED_BREAKER,
        deleting: false,
      });
      expect(uid).to.equal(
        await cluster().kubectl('get', 'sbp', 'p', '-n', 'alpha', '-o', 'jsonpath={.metadata.uid}'),
      );
      expect(Math.abs(createdAt - Date.now())).to.be.lessThan(60_000);
      expect(revision).to.match(/^\d+$/);
      expect(one.pools.get('q')).to.deep.include({
        owner: { namespace: 'alpha', team: 'alpha', user: 'bob' },
        replicas: 1,
      });
      await eventually(
        () =>
          ['p', 'q'].every(
            (name) => one.pools.get(name)?.revision === two.pools.get(name)?.revision,
          ),
        'both replicas show the same',
      );
      await eventually(
        async () =>
          (await ready('sbp', 'p')).startsWith('True') || (await ready('sbp', 'p')) === '',
        'nothing is wrong any more',
      );
    });

    it('follow kubectl: scaled, edited, deleted', async () => {
      const { store, pools, templates } = await aReplica();
      await apply(template('small'), pool('p'));
      await eventually(() => pools.size === 1, 'the pool is taken in');

      await cluster().patch(['sbp', 'p', '-n', 'alpha'], { spec: { replicas: 7 } });
      await eventually(() => pools.get('p')?.replicas === 7, 'scaled');
      await cluster().kubectl('label', 'sbp', 'p', '-n', 'alpha', 'mine=kept');
      await eventually(async () => {
        const record = await store.pools.get('alpha/p');
        return (
          record !== undefined &&
          store.pools.update({ ...record, replicas: 8 }).then(
            () => true,
            () => false,
          )
        );
      }, 'scaled over REST');
      expect(
        await cluster().kubectl(
          'get',
          'sbp',
          'p',
          '-n',
          'alpha',
          '-o',
          'jsonpath={.metadata.labels.mine} {.spec.replicas}',
        ),
      ).to.equal('kept 8');

      await apply(template('small', { image: 'debian' }));
      await eventually(() => templates.get('small')?.version === '2', 'a new version');
      expect(templates.get('small')?.document.spec.containers[0]?.image).to.equal('debian');
      expect(specOfVersion(templates.get('small')!, '1')?.containers[0]?.image).to.equal('busybox');
      expect(pools.get('p')?.templateVersion).to.equal('1');

      await cluster().kubectl('delete', 'sbp', 'p', '-n', 'alpha');
      await cluster().kubectl('delete', 'sbt', 'small');
      await eventually(() => pools.size === 0 && templates.size === 0, 'gone');
    });

    it('report on an object why it is invalid, and include it once it is valid', async () => {
      const { pools, templates } = await aReplica({
        lookups: {
          check: ({ network }) => {
            if (network === 'host')
              throw new DefinitionRefused('spec.network: host is not for Pods');
          },
        },
      });
      const named = { annotations: { 'sandpool.dev/user': 'Not a label' } };
      await apply(
        {
          ...template('twins'),
          spec: {
            containers: [
              { name: 'a', image: 'x', ports: [{ name: 'web', containerPort: 1 }] },
              { name: 'b', image: 'x', ports: [{ name: 'web', containerPort: 2 }] },
            ],
          },
        },
        { ...template('open'), spec: { network: 'host', containers: [{ name: 'a', image: 'x' }] } },
        pool('anothers', {}, { annotations: { 'sandpool.dev/team': 'ops' } }),
        pool('misnamed', {}, named),
        pool('early'),
      );

      for (const [kind, name, why] of [
        ['sbt', 'twins', 'False Invalid spec.containers.1.ports.0.name: is given twice'],
        ['sbt', 'open', 'False DefinitionRefused spec.network: host is not for Pods'],
        [
          'sbp',
          'anothers',
          'False OwnerInvalid sandpool.dev/team must be alpha, which owns this namespace',
        ],
        [
          'sbp',
          'misnamed',
          'False OwnerInvalid sandpool.dev/user must be a DNS-1123 label: 1 to 63 of a-z, 0-9 and inner hyphens',
        ],
        [
          'sbp',
          'early',
          'False TemplateNotFound spec.templateName: there is no usable template small',
        ],
      ] as const)
        await eventually(async () => (await ready(kind, name)) === why, `${name}: ${why}`);
      expect([pools.size, templates.size]).to.deep.equal([0, 0]);

      await apply(template('small'), template('open'));
      await eventually(() => pools.has('early') && templates.has('open'), 'taken in');
      for (const [kind, name] of [
        ['sbp', 'early'],
        ['sbt', 'open'],
      ] as const)
        await eventually(
          async () => (await ready(kind, name)) === 'True Usable ',
          `${name} is right`,
        );
    });

    it('omit a template after an invalid edit', async () => {
      const { templates } = await aReplica();
      await apply(template('small'));
      await eventually(() => templates.size === 1, 'taken in');

      await apply(template('small', { readinessProbe: { tcpSocket: { port: 'nowhere' } } }));

      await eventually(() => templates.size === 0, 'not shown');
      await apply(template('small', { image: 'debian' }));
      await eventually(() => templates.get('small')?.version === '2', 'shown again');
    });

    it('give a copy of a pool its own uid', async () => {
      const { store, pools } = await aReplica();
      await apply(template('small'));
      await store.pools.create({ ...aPoolRecord(), name: 'first' });
      const copy = await object('sbp', 'first');

      await apply({ ...copy, metadata: { name: 'second', namespace: 'alpha' } });

      await eventually(() => pools.size === 2, 'both are shown');
      expect(pools.get('first')?.uid).to.equal(aPoolRecord().uid);
      expect(pools.get('second')?.uid).to.not.equal(aPoolRecord().uid);
    });

    it('end a pool whose deletion is held up by a finalizer', async () => {
      const { store, pools } = await aReplica();
      await store.pools.create(aPoolRecord());
      await cluster().patch(['sbp', 'p', '-n', 'alpha'], {
        metadata: { finalizers: ['example.com/hold'] },
      });
      await cluster().kubectl('delete', 'sbp', 'p', '-n', 'alpha', '--wait=false');

      await eventually(() => pools.get('p')?.deleting === 'keep-running', 'deleting');

      await cluster().patch(['sbp', 'p', '-n', 'alpha'], { metadata: { finalizers: null } });
      await eventually(() => pools.size === 0, 'gone');
    });

    it('leave an object of a later version untouched', async () => {
      const told: (string | undefined)[] = [];
      const { store, pools } = await aReplica({
        outdated: (object, why) => {
          told.push(why && `${object} ${why}`);
        },
      });
      await store.pools.create(aPoolRecord());
      await eventually(() => pools.size === 1, 'shown');

      await asALaterVersion(() => laterPool(testSeals));
      await eventually(() => told.length === 1, 'told');
      expect(told).to.deep.equal([
        'sandboxpools: alpha/p was written by a later version (format 3)',
      ]);
      expect(pools.size).to.equal(0);

      await cluster().kubectl('delete', 'sbp', 'p', '-n', 'alpha');
      await eventually(() => told.length === 2, 'told that it is gone');
      expect(told[1]).to.equal(undefined);
    });

    it('ignore a forged object of a later format, and report on it that it is unusable', async () => {
      const told: unknown[] = [];
      const { store, pools } = await aReplica({
        outdated: (...what) => {
          told.push(what);
        },
      });
      await store.pools.create(aPoolRecord());
      await eventually(() => pools.size === 1, 'shown');

      await asALaterVersion(() => laterPool(othersSeals));

      await eventually(
        async () => (await ready('sbp', 'p')).startsWith('False LaterFormat'),
        'it says why',
      );
      expect([told, pools.size]).to.deep.equal([[], 0]);
    });

    it('are refused in a later format by the definitions of this version', async () => {
      const { store } = await aReplica();
      await store.pools.create(aPoolRecord());

      const refused = await rejection(
        cluster().patch(['sbp', 'p', '-n', 'alpha'], { resolved: { format: 2 } }),
      );

      expect(refused.message).to.include(
        'resolved.format in body should be less than or equal to 1',
      );
    });

    const asALaterVersion = (write: () => Promise<void>): Promise<void> =>
      withLaterDefinitions(cluster(), () =>
        eventually(
          () =>
            write().then(
              () => true,
              () => false,
            ),
          'the later definition is served',
        ),
      );
    const laterPool = async (seals: Seals): Promise<void> => {
      const { metadata, resolved: found } = await object('sbp', 'p');
      const resolved = seals.sealed('SandboxPool', metadata, {
        uid: metadata.uid,
        content: { ...(found as object), format: 3, seal: undefined },
      });
      await cluster().patch(['sbp', 'p', '-n', 'alpha'], { resolved });
    };

    it('are created with the seal of the object in one call', async () => {
      const { store } = await aReplica();
      const created = await store.pools.create(aPoolRecord());
      const key = await store.apiKeys.create(aKey());

      const stored = await object('sbp', 'p');
      expect(testSeals.judge(stored, stored.resolved as SealedContent)).to.equal('bound');
      expect(created.revision).to.equal(stored.metadata.resourceVersion);
      const storedKey = await object('sbk', 'k');
      expect(testSeals.judge(storedKey, storedKey.spec as SealedContent)).to.equal('bound');
      expect(key.revision).to.equal(storedKey.metadata.resourceVersion);
      const bare = await cluster().kubectlAs('admin', [
        'patch',
        'sbp',
        'p',
        '-n',
        'alpha',
        '--type=json',
        '-p',
        '[{"op":"remove","path":"/resolved/seal"}]',
      ]);
      expect(bare.stderr).to.include('resolved.seal is filled in by Sandpool and must stay');
    });

    it("are refused with a reason if the namespace is missing or not a tenant's", async () => {
      const { store } = await aReplica();
      const inNamespace = (namespace: string) =>
        rejection(
          store.pools.create({ ...aPoolRecord(), owner: { namespace, team: 'a', user: 'b' } }),
        );

      expect(await inNamespace('default'))
        .to.include({ code: 'UNAVAILABLE' })
        .and.have.property('message')
        .that.includes('Kubernetes forbids this');
      expect(await inNamespace('nowhere')).to.include({ code: 'UNAVAILABLE' });
    });
  });
});

/** The same one at each call. */
const aPoolRecord = (): PoolRecord =>
  aStoredPool({
    uid: '019a0000-0000-7000-8000-000000000001',
    revision: '',
    name: 'p',
    source: { templateName: 'small' },
  });

const aKey = (): Omit<ApiKeyRecord, 'revision'> => ({
  keyId: 'k'.repeat(16),
  namespace: 'alpha',
  shortName: 'k',
  team: 'alpha',
  user: 'alice',
  role: 'user',
  description: '',
  hash: '0'.repeat(64),
  issuedAt: 1_700_000_000_000,
  expiresAt: 1_900_000_000_000,
});
