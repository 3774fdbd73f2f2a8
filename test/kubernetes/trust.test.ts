import { expect } from 'chai';
import { stringify } from 'yaml';
import { admissionPolicy } from '../../local-cluster/control-plane/sandpool-rights.ts';
import { withLaterDefinitions } from '../support/cluster/later-definitions.ts';
import { aPodTemplate } from '../../local-cluster/replicas.ts';
import type { ResourceObject } from '../../src/k8s/api/resource.ts';
import { Seals } from '../../src/k8s/api/seals.ts';
import { sealKeyOf } from '../../src/daemon/shared-secrets.ts';
import { aDefinition } from '../support/builders/instance-orders.ts';
import { eventually } from '../support/harness/eventually.ts';
import { HttpClient } from '../support/harness/http-client.ts';
import { onReplicas } from '../support/cluster/on-replicas.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';
import { asMergePatch } from '../../local-cluster/control-plane/cluster.ts';

const IMAGE = 'registry.invalid/sandbox:1';
const NOW = (): string => new Date().toISOString();

describe("a user with write access to Sandpool objects in a tenant's namespace", function () {
  const controlPlane = onTheControlPlane();
  const replicas = onReplicas(controlPlane, { count: 2 });
  let tenant: HttpClient;
  let admin: HttpClient;
  let mallorysKey: string;
  let namespace: string;

  before(async () => {
    tenant = new HttpClient(replicas().replica(0).port, await replicas().tenant('black', 'bea'));
    mallorysKey = await replicas().tenant('black', 'mallory');
    admin = new HttpClient(replicas().replica(0).port, replicas().adminKey);
    namespace = replicas().namespaceOf('black');
    await controlPlane().apply(aPodTemplate('trusted'));
    await controlPlane().apply([
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'Role',
        metadata: { name: 'mallory', namespace },
        rules: [{ apiGroups: ['sandpool.dev'], resources: ['*'], verbs: ['*'] }],
      },
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'RoleBinding',
        metadata: { name: 'mallory', namespace },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'mallory' },
        subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'mallory' }],
      },
    ]);
  });
  after(() => {
    tenant?.close();
    admin?.close();
  });

  const asMallory = (...args: readonly string[]) =>
    controlPlane().kubectlAs('admin', ['--as=mallory', '-n', namespace, ...args]);
  /** Says why it was refused; empty if it was not. */
  const patched = async (kind: string, name: string, change: object): Promise<string> =>
    (await asMallory('patch', kind, name, ...asMergePatch(change))).stderr;
  const written = async (object: object): Promise<string> =>
    (
      await controlPlane().kubectlAs(
        'admin',
        ['--as=mallory', '-n', namespace, 'create', '-f', '-'],
        stringify(object),
      )
    ).stderr
      .replaceAll(/^Warning.*\n/gm, '')
      .trim();
  const read = async <T = ResourceObject>(kind: string, name: string): Promise<T> =>
    JSON.parse(await controlPlane().kubectl('get', kind, name, '-n', namespace, '-o', 'json')) as T;
  const ready = (kind: string, name: string): Promise<string> =>
    controlPlane().kubectl(
      'get',
      kind,
      name,
      '-n',
      namespace,
      '-o',
      'jsonpath={range .status.conditions[?(@.type=="Ready")]}{.status} {.reason}{end}',
    );
  const pod = (uid: string): Promise<string> =>
    controlPlane().kubectl(
      'get',
      'pods',
      '-n',
      namespace,
      '-l',
      `sandpool.dev/pool-uid=${uid}`,
      '-o',
      'json',
    );
  const podsOf = async (uid: string) =>
    (
      JSON.parse(await pod(uid)) as {
        items: readonly {
          metadata: { labels: Record<string, string> };
          spec: { imagePullSecrets?: object[]; volumes?: { persistentVolumeClaim?: object }[] };
        }[];
      }
    ).items;

  const aPoolManifest = (name: string, spec: object = {}): { metadata: { name: string } } =>
    ({
      apiVersion: 'sandpool.dev/v1alpha1',
      kind: 'SandboxPool',
      metadata: { name },
      spec: { templateName: 'trusted', replicas: 1, ...spec },
    }) as never;
  const forgery = (name: string, part: object = {}): object => ({
    format: 1,
    uid: `forged-${name}`,
    bornAs: `${namespace}/${name}`,
    bornAt: NOW(),
    createdAt: NOW(),
    team: 'black',
    user: 'nobody',
    replicas: 1,
    renderedFrom: 'forged',
    templateVersion: '1',
    definition: {
      ...aDefinition({ image: IMAGE }),
      network: 'open',
      volumes: [{ claimName: 'anybodys', mountPath: '/data' }],
      imagePullSecret: 'another-env',
    },
    updateRevision: 'r',
    breaker: { failures: 0, pausedUntil: 0, reason: '' },
    deleting: 'none',
    ...part,
  });

  it('gets no Pod with a definition of their own', async () => {
    expect(await written({ ...aPoolManifest('forged'), resolved: forgery('forged') })).to.equal('');
    expect(
      await written({
        ...aPoolManifest('sealed'),
        resolved: forgery('sealed', { seal: 'A'.repeat(43) }),
      }),
    ).to.equal('');

    for (const name of ['forged', 'sealed']) {
      await eventually(
        async () => (await ready('sbp', name)) === 'False NotSealed',
        `${name} is not used`,
      );
      expect((await tenant.get(`/sandboxpools/${name}`)).status).to.equal(404);
      expect(await podsOf(`forged-${name}`)).to.deep.equal([]);
    }
  });

  it('gets a pool from the spec, if the other fields belong to another object', async () => {
    expect(
      await written({
        ...aPoolManifest('copied'),
        resolved: forgery('original', { bornAs: `${namespace}/original` }),
      }),
    ).to.equal('');

    const { metadata } = await read('sbp', 'copied');
    await eventually(
      async () => (await podsOf(metadata.uid)).length === 1,
      'it has a Pod of its own spec',
    );
    const [made] = await podsOf(metadata.uid);
    expect(made?.metadata.labels).to.include({ 'sandpool.dev/network': 'none' });
    expect(made?.spec.imagePullSecrets).to.equal(undefined);
    expect(
      made?.spec.volumes?.filter((volume) => volume.persistentVolumeClaim) ?? [],
    ).to.deep.equal([]);
    expect((await read<{ resolved: object }>('sbp', 'copied')).resolved).to.deep.include({
      uid: metadata.uid,
      team: 'black',
      user: 'default',
    });
  });

  it('cannot mount a claim that GET /volumes does not offer', async () => {
    expect(
      await written(
        aPoolManifest('claims', {
          overrides: { volumes: [{ claimName: 'anybodys', mountPath: '/data' }] },
        }),
      ),
    ).to.equal('');

    const { metadata } = await read('sbp', 'claims');
    const shown = async () => (await admin.get('/sandboxpools?all=true')).text;
    await eventually(
      async () => (await shown()).includes('the volume anybodys no longer exists'),
      'it says why nothing starts',
    );
    expect(await podsOf(metadata.uid)).to.deep.equal([]);
  });

  it("gets no more by kubectl than the owner's quotas allow, with a message", async () => {
    const carl = new HttpClient(
      replicas().replica(1).port,
      await replicas().tenant('black', 'carl'),
    );
    const used = async (resource: string) =>
      ((await carl.get('/quotas')).json.items ?? []).find(
        (item) => item['resource'] === resource,
      )?.['used'];
    const ofCarl = (name: string, count: number) => ({
      ...aPoolManifest(name, { replicas: count }),
      metadata: { name, annotations: { 'sandpool.dev/user': 'carl' } },
    });
    const limit = async (limits: object) => {
      await untilAnswered(200, () => admin.put('/admin/quotas/black/carl', limits));
    };
    const scaled = async (count: number) => {
      expect(await patched('sbp', 'carls', { spec: { replicas: count } })).to.equal('');
    };
    const running = async () => (await podsOf((await read('sbp', 'carls')).metadata.uid)).length;
    const granted = async () =>
      (await read<{ resolved?: { replicas: number } }>('sbp', 'carls')).resolved?.replicas;
    await limit({ replicas: 3, pools: 1 });

    expect(await written(ofCarl('carls', 4))).to.equal('');
    await eventually(
      async () => (await ready('sbp', 'carls')) === 'False QuotaExceeded',
      'it says why it is not used',
    );
    expect([await running(), await granted()]).to.deep.equal([0, undefined]);
    await scaled(2);
    await eventually(async () => (await running()) === 2, 'within the quota it starts');
    await eventually(
      async () => (await ready('sbp', 'carls')) === 'True InstancesIdle',
      'it is used',
    );

    await scaled(5);
    await eventually(
      async () => (await ready('sbp', 'carls')) === 'False QuotaExceeded',
      'it says why it does not grow',
    );
    expect((await read('sbp', 'carls')).status?.conditions?.[0]?.message).to.include(
      'black/carl may have 3 replicas, 2 are used, and this needs 3 more',
    );
    expect([await running(), await granted()]).to.deep.equal([2, 2]);
    await eventually(async () => (await used('replicas')) === 2, 'two are used');
    expect(await written(ofCarl('another', 0))).to.equal('');
    await eventually(
      async () => (await ready('sbp', 'another')) === 'False QuotaExceeded',
      'one pool is the most',
    );

    await limit({ replicas: 5 });
    await eventually(async () => (await running()) === 5, 'with the quota it grows');
    await eventually(
      async () => (await ready('sbp', 'carls')) === 'True InstancesIdle',
      'all is well',
    );
    await scaled(0);
    await eventually(
      async () => (await granted()) === 0 && (await used('replicas')) === 0,
      'what is given back counts no more',
    );
    carl.close();
  });

  it('cannot create an admin, not even by an API key of their own', async () => {
    const mine = new HttpClient(replicas().replica(1).port, mallorysKey);
    await untilAnswered(200, () => mine.get('/sandboxes'));
    const { items } = JSON.parse(
      await controlPlane().kubectl('get', 'sbk', '-n', namespace, '-o', 'json'),
    ) as { items: readonly (ResourceObject & { spec: { user: string } })[] };
    const own = items.find(({ spec }) => spec.user === 'mallory');
    await asMallory('delete', 'sbk', own?.metadata.name ?? '');
    await eventually(async () => (await mine.get('/sandboxes')).status === 401, 'it is revoked');

    const { name, labels } = own!.metadata;
    expect(
      await written({ ...own, metadata: { name, labels }, spec: { ...own!.spec, role: 'admin' } }),
    ).to.equal('');
    expect(await written({ ...own, metadata: { name: `${name}-again`, labels } })).to.equal('');

    await eventually(
      async () => (await ready('sbk', name)) === 'False NotSealed',
      'it says that it is no key',
    );
    expect((await mine.get('/admin/api-keys')).status).to.equal(401);
    expect((await mine.get('/sandboxes')).status).to.equal(401);
    mine.close();
  });

  it('cannot stop replicas by an object of a later format', async () => {
    await withLaterDefinitions(controlPlane(), async () => {
      await eventually(
        async () =>
          (await written({
            ...aPoolManifest('later'),
            resolved: forgery('later', { format: 3 }),
          })) === '',
        'it is written',
      );
      await eventually(
        async () => (await ready('sbp', 'later')) === 'False LaterFormat',
        'it is unusable by itself',
      );
    });

    for (const replica of replicas().list) {
      const client = new HttpClient(replica.port, replicas().adminKey);
      await untilAnswered(200, () => client.get('/readyz')); // the object is still there
      client.close();
    }
    await eventually(
      async () => (await admin.get('/debug/shards')).text.includes('"leading":true'),
      'it leads',
    );
  });

  it('sees all replicas stopped only while a later version is running', async () => {
    await untilAnswered(201, () =>
      tenant.post('/sandboxpools', { name: 'later-still', templateName: 'trusted', replicas: 0 }),
    );
    const seals = new Seals({ key: sealKeyOf(replicas()) });
    const clients = replicas().list.map(({ port }) => new HttpClient(port, replicas().adminKey));
    const leading = async () =>
      (await Promise.all(clients.map((client) => client.get('/debug/shards')))).filter(({ text }) =>
        text.includes('"leading":true'),
      ).length;

    await withLaterDefinitions(controlPlane(), async () => {
      await eventually(async () => {
        const { metadata, resolved } = await read('sbp', 'later-still');
        const content = { ...(resolved as object), format: 3, seal: undefined };
        const sealed = seals.sealed('SandboxPool', metadata, { uid: metadata.uid, content });
        return controlPlane()
          .patch(['sbp', 'later-still', '-n', namespace], { resolved: sealed })
          .then(
            () => true,
            () => false,
          );
      }, 'a later version writes');
      for (const client of clients) {
        await eventually(
          async () =>
            (await client.get('/readyz')).text.includes(
              'was written by a later version (format 3)',
            ),
          'not ready, and says why',
        );
        expect((await client.get('/sandboxes?all=true')).status).to.equal(200);
      }
      await eventually(async () => (await leading()) === 0, 'nobody leads');
    });
    await controlPlane().kubectl('delete', 'sbp', 'later-still', '-n', namespace);

    for (const client of clients) await untilAnswered(200, () => client.get('/readyz'));
    await eventually(async () => (await leading()) > 0, 'they lead again');
    clients.forEach((client) => {
      client.close();
    });
  });

  it("is refused at once by the admission policy, which reserves the daemon's fields", async () => {
    await underAdmissionPolicy(async () => {
      await eventually(
        async () =>
          (await written({ ...aPoolManifest('refused'), resolved: forgery('refused') })).includes(
            'resolved is for Sandpool alone to write',
          ),
        'a forged pool is refused',
      );
      const key = {
        apiVersion: 'sandpool.dev/v1alpha1',
        kind: 'ApiKey',
        metadata: { name: 'refused' },
        spec: keySpec(),
      };
      expect(await written(key)).to.include('spec is for Sandpool alone to write');
      expect(await written(aPoolManifest('by-hand'))).to.equal('');
      await eventually(
        async () => (await read<{ resolved?: object }>('sbp', 'by-hand')).resolved !== undefined,
        'the daemon fills it in',
      );
      expect(await patched('sbp', 'by-hand', { spec: { replicas: 2 } })).to.equal('');
      expect(await patched('sbp', 'by-hand', { resolved: { user: 'bea' } })).to.include(
        'resolved is for Sandpool alone to write',
      );
      expect((await asMallory('label', 'sbp', 'by-hand', 'mine=kept')).exitCode).to.equal(0);
      await untilAnswered(201, () =>
        tenant.post('/sandboxpools', { name: 'over-rest', templateName: 'trusted', replicas: 1 }),
      );
      const claimed = await untilAnswered(201, () =>
        tenant.post('/sandboxes', { poolName: 'over-rest' }),
      );
      const sandbox = `sb-${(claimed.json as { sandbox: { sandboxId: string } }).sandbox.sandboxId}`;
      expect(await patched('sbx', sandbox, { spec: { claim: { idleTimeoutMs: 1 } } })).to.include(
        'spec is for Sandpool alone to write',
      );
      expect((await asMallory('annotate', 'sbx', sandbox, 'mine=kept')).exitCode).to.equal(0);
      expect((await asMallory('delete', 'sbx', sandbox)).exitCode).to.equal(0);
    });
  });

  it("is protected by the admission policy, which limits the daemon's Secrets by name and type", async () => {
    const secret = (name: string, type: string): string =>
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name, namespace },
        type,
        data: { '.dockerconfigjson': Buffer.from('{"auths":{}}').toString('base64') },
      });
    const asDaemon = async (args: readonly string[], input = ''): Promise<string> =>
      (await controlPlane().kubectlAs('admin', ['--as=sandpool', ...args], input)).stderr;
    const made = async (name: string, type = 'kubernetes.io/dockerconfigjson'): Promise<string> =>
      await asDaemon(['create', '--validate=false', '-f', '-'], secret(name, type));
    await controlPlane().kubectlAs('admin', ['create', '-f', '-'], secret('not-its-own', 'Opaque'));
    await underAdmissionPolicy(async () => {
      await eventually(
        async () =>
          (
            await asDaemon([
              'delete',
              'secret',
              'not-its-own',
              '-n',
              namespace,
              '--wait=false',
              '--dry-run=server',
            ])
          ).includes('Sandpool writes Secrets named sandpool-pull-'),
        "another's Secret is not deleted",
      );
      expect(await made('of-another-name')).to.include(
        'Sandpool writes Secrets named sandpool-pull-',
      );
      expect(await made('sandpool-pull-opaque', 'Opaque')).to.include(
        'of the type kubernetes.io/dockerconfigjson alone',
      );
      expect(await made('sandpool-pull-its-own')).to.equal('');
      expect(
        await asDaemon([
          'delete',
          'secret',
          'sandpool-pull-its-own',
          '-n',
          namespace,
          '--wait=false',
        ]),
      ).to.equal('');
    });
  });

  const underAdmissionPolicy = async (work: () => Promise<void>): Promise<void> => {
    const policies = admissionPolicy('sandpool') as readonly { metadata: { name: string } }[];
    await controlPlane().apply(policies);
    try {
      await work();
    } finally {
      await controlPlane().kubectl(
        'delete',
        'validatingadmissionpolicybinding,validatingadmissionpolicy',
        ...new Set(policies.map(({ metadata }) => metadata.name)),
      );
    }
  };
  const keySpec = (): object => ({
    format: 1,
    keyId: 'm'.repeat(16),
    team: 'black',
    user: 'mallory',
    role: 'admin',
    description: '',
    hash: '0'.repeat(64),
    issuedAt: NOW(),
    expiresAt: NOW(),
  });
});
