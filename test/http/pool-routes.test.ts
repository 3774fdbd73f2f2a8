import { expect } from 'chai';
import { anEngine, hangs } from '../support/harness/engine-operations.ts';
import { aServer, type TestServer } from './a-server.ts';

describe('pools over HTTP', () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await aServer();
  });
  afterEach(() => server.stop());

  const POOL = {
    name: 'shells',
    namespace: 'team-blue',
    cpu: '500m',
    memory: '256Mi',
    containerImages: { main: 'host' },
    network: 'none',
    ports: {},
    team: 'blue',
    user: 'ada',
    templateVersion: '1',
    createdAt: '2026-03-01T12:00:00.000Z',
    labels: {},
    annotations: { 'sandpool.dev/template-name': 'default' },
    spec: { replicas: 3 },
    status: {
      phase: 'Ready',
      idleReplicas: 3,
      unavailableIdleReplicas: 0,
      runningReplicas: 0,
      startingReplicas: 0,
      stoppingReplicas: 0,
      failedReplicas: 0,
      updateRevision: 'f539b027c9c74344',
      updatedReplicas: 3,
      outdatedReplicas: 0,
      observedTemplateVersion: '1',
      conditions: [
        {
          type: 'Progressing',
          status: 'False',
          reason: 'RolloutComplete',
          message: '',
          lastTransitionTime: '2026-03-01T12:00:00.000Z',
        },
        {
          type: 'Degraded',
          status: 'False',
          reason: 'AsExpected',
          message: '',
          lastTransitionTime: '2026-03-01T12:00:00.000Z',
        },
        {
          type: 'TemplateResolved',
          status: 'True',
          reason: 'Resolved',
          message: '',
          lastTransitionTime: '2026-03-01T12:00:00.000Z',
        },
      ],
    },
  };
  /** What has a length that is no number, and can't be compared. */
  /** By itself it shows what its instances are started from too. */
  const POOL_ALONE = {
    ...POOL,
    status: {
      ...POOL.status,
      template: {
        containers: [
          {
            name: 'main',
            image: 'host',
            command: ['sleep', 'infinity'],
            env: [],
            workingDir: '/home/sandbox',
            resources: { limits: { cpu: '500m', memory: '256Mi' } },
          },
        ],
        network: 'none',
        startupTimeout: '30s',
        idleTimeout: '30m',
        maxLifetime: '0s',
      },
    },
  };
  const ODD = { length: { toString: null } };
  /** Beyond 256 KiB. */
  const LARGE = {
    containers: [
      { name: 'main', image: 'host', args: Array.from({ length: 33 }, () => 'x'.repeat(8_000)) },
    ],
  };
  const create = (body: object = {}) =>
    server.tenant.post('/sandboxpools', {
      name: 'shells',
      templateName: 'default',
      replicas: 3,
      ...body,
    });

  describe('POST /sandboxpools', () => {
    it('returns 201 with the pool as a template', async () => {
      const answer = await create();
      expect(answer.status).to.equal(201);
      const { status } = POOL_ALONE;
      const begun = { ...status, phase: 'Pending', idleReplicas: 0, startingReplicas: 3 };
      expect(answer.json).to.deep.equal({ template: { ...POOL_ALONE, status: begun } });
    });

    it('creates one replica by default', async () => {
      const answer = await server.tenant.post('/sandboxpools', {
        name: 'one',
        templateName: 'default',
      });
      expect(answer.json.template!.spec).to.deep.equal({ replicas: 1 });
    });

    for (const [body, field] of [
      [{ name: undefined }, 'name'],
      [{ name: 'Upper' }, 'name'],
      [{ name: 'a/b' }, 'name'],
      [{ name: '' }, 'name'],
      [{ name: '-a' }, 'name'],
      [{ name: 'a'.repeat(64) }, 'name'],
      [{ name: 5 }, 'name'],
      [{ templateName: undefined }, 'templateName'],
      [{ templateName: null }, 'templateName'],
      [{ replicas: -1 }, 'replicas'],
      [{ replicas: 10_001 }, 'replicas'],
      [{ replicas: '3' }, 'replicas'],
      [{ replicas: 1.5 }, 'replicas'],
      [{ replicas: null }, 'replicas'],
      [{ labels: [] }, 'labels'],
      [{ labels: { a: 1 } }, 'labels.a'],
      [
        { labels: Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`l${n}`, ''])) },
        'labels',
      ],
      [{ annotations: { a: 'x'.repeat(4_097) } }, 'annotations.a'],
      [{ templateName: undefined, template: null }, 'template'],
      [{ templateName: undefined, template: {} }, 'template.containers'],
      [
        {
          templateName: undefined,
          template: { containers: [{ name: 'a', image: 'b', privileged: true }] },
        },
        'template.containers[0].privileged',
      ],
      [{ template: { containers: [{ name: 'a', image: 'b' }] } }, 'template'],
      [{ templateName: undefined, template: LARGE }, 'template'],
      [
        { templateName: undefined, overrides: { podCreationImagePolicy: 'EnvOverrideImage' } },
        'templateName',
      ],
      [
        {
          templateName: undefined,
          overrides: { image: 'x', podCreationImagePolicy: 'PoolDefaultImage' },
        },
        'templateName',
      ],
      [{ overrides: { podCreationImagePolicy: 'Newest' } }, 'overrides.podCreationImagePolicy'],
      [{ overrides: [] }, 'overrides'],
      [{ overrides: { image: '' } }, 'overrides.image'],
      [{ overrides: { image: 7 } }, 'overrides.image'],
      [{ overrides: { gateway: true } }, 'overrides.gateway'],
      [{ overrides: { gateway: { enabled: 'no' } } }, 'overrides.gateway.enabled'],
      [{ overrides: { envd: { verbose: 1 } } }, 'overrides.envd.verbose'],
      [{ overrides: { defaultIdleTimeout: '5 min' } }, 'overrides.defaultIdleTimeout'],
      [{ overrides: { defaultStartupTimeout: '2h' } }, 'overrides.defaultStartupTimeout'],
      [
        { overrides: { imagePullSecret: { registries: [{ registry: 'r', username: 'u' }] } } },
        'overrides.imagePullSecret.registries[0].password',
      ],
      [{ overrides: { volumes: [{ claimName: 'c' }] } }, 'overrides.volumes[0].mountPath'],
      [
        { overrides: { volumes: [{ claimName: 'c', mountPath: '/a/../b' }] } },
        'overrides.volumes[0].mountPath',
      ],
      [
        { overrides: { volumes: [{ claimName: 'c', mountPath: '/a', subPath: '../b' }] } },
        'overrides.volumes[0].subPath',
      ],
      [
        { templateName: undefined, template: { containers: [{ name: 'a', image: ODD }] } },
        'template.containers[0].image',
      ],
      [{ overrides: { volumes: ODD } }, 'overrides.volumes'],
      [{ multiplier: 0 }, 'multiplier'],
      [{ multiplier: '2' }, 'multiplier'],
      [{ cpu: 2 }, 'cpu'],
      [{ cpu: '9m' }, 'cpu'],
      [{ memory: '15Mi' }, 'memory'],
      [{ inlineResources: { limits: { cpu: '257' } } }, 'inlineResources.limits.cpu'],
      [{ minReplicas: -1 }, 'minReplicas'],
      [{ maxReplicas: 10_001 }, 'maxReplicas'],
      [{ updateStrategy: { maxUnavailable: '101%' } }, 'updateStrategy.maxUnavailable'],
      [{ updateStrategy: { maxUnavailable: 2 } }, 'updateStrategy.maxUnavailable'],
      [{ updateStrategy: { autoUpdate: 'yes' } }, 'updateStrategy.autoUpdate'],
    ] as const) {
      it(`refuses ${JSON.stringify(body).slice(0, 60)}`, async () => {
        const answer = await create(body);
        expect(answer.status).to.equal(400);
        expect(answer.json.errorCode).to.equal('INVALID_ARGUMENT');
        expect(answer.json.detail!.field).to.equal(field);
        expect(server.operations.pools.size).to.equal(0);
      });
    }

    /** What this deployment has, to name in a pool. */
    const offer = async (): Promise<void> => {
      await server.stop();
      server = await aServer({ operations: anEngine({ images: ['busybox', 'x'] }) });
      server.operations.types.push({
        ...{ name: 'small', showName: 'Small', description: '', maxMultiplier: 4 },
        ...{ extensions: {}, baseResources: { requests: {}, limits: { cpu: '1' } } },
      });
      const volume = {
        ...{ displayName: '', capacity: '1Gi', accessModes: ['ReadWriteMany'] },
        ...{ storageClass: 'fast', phase: 'Bound' as const },
      };
      const claims = ['data', 'c'].map((claimName) => ({ ...volume, claimName }));
      server.operations.volumesOf.set('team-blue', claims);
    };

    it('shows the requested values unchanged, and never a password', async () => {
      await offer();
      const source = {
        template: {
          containers: [{ name: 'main', image: 'busybox', resources: { limits: { cpu: '1' } } }],
        },
        instanceType: 'small',
        multiplier: 1.5,
        memory: '1Gi',
        inlineResources: { requests: { cpu: '100m' } },
      };
      const overrides = {
        image: 'x',
        gateway: { enabled: false },
        envd: { verbose: true },
        volumes: [{ claimName: 'data', mountPath: '/data', readOnly: true }],
      };
      const answer = await create({
        templateName: undefined,
        ...source,
        minReplicas: 2,
        maxReplicas: 9,
        updateStrategy: { autoUpdate: false },
        overrides: {
          ...overrides,
          imagePullSecretConfigured: true,
          imagePullSecret: {
            registries: [{ registry: 'r.example', username: 'u', password: 'hunter2' }],
          },
        },
      });

      expect(answer.status).to.equal(201);
      expect(answer.json.template!.spec).to.deep.equal({
        ...{ replicas: 3, minReplicas: 2, maxReplicas: 9, ...source },
        updateStrategy: { autoUpdate: false, maxUnavailable: '25%' },
        overrides: { ...overrides, imagePullSecretConfigured: true },
      });
      expect(answer.text).to.not.contain('hunter2');
      expect([...server.operations.passwords.values()].flat()).to.deep.equal([
        { registry: 'r.example', username: 'u', password: 'hunter2' },
      ]);
      expect(answer.json.template!.annotations).to.deep.equal({});
    });

    it('names unknown fields, including nested ones, in a Warning', async () => {
      await offer();
      const answer = await create({
        colour: 'red',
        overrides: {
          image: 'x',
          speed: 9,
          volumes: [{ claimName: 'c', mountPath: '/c', mode: 1 }],
        },
      });

      expect(answer.status).to.equal(201);
      for (const field of ['colour', 'overrides.speed', 'overrides.volumes[0].mode'])
        expect(answer.headers['warning']).to.contain(`unknown field ${field}"`);
      expect(answer.json.template!.spec).to.deep.equal({
        replicas: 3,
        overrides: { image: 'x', volumes: [{ claimName: 'c', mountPath: '/c' }] },
      });
    });

    it('gives one message about maxUnavailable for a wrong type and a wrong value', async () => {
      for (const maxUnavailable of [2, 'two', '101%']) {
        const { text } = await create({ updateStrategy: { maxUnavailable } });
        expect(text).to.contain('must be a string');
      }
    });

    it('omits the Warning about unknown fields if the body is refused', async () => {
      const answer = await create({
        colour: 'red',
        template: { containers: [], privileged: true },
      });

      expect([answer.status, answer.headers['warning']]).to.deep.equal([400, undefined]);
    });
  });

  describe('GET /sandboxpools and /sandboxpools/{name}', () => {
    it('return the pool, in a page and separately', async () => {
      await create();
      expect((await server.tenant.get('/sandboxpools/shells')).json).to.deep.equal({
        template: POOL_ALONE,
      });
      expect((await server.tenant.get('/sandboxpools')).json).to.deep.equal({
        items: [POOL],
        total: 1,
        limit: 20,
        offset: 0,
      });
    });

    it('page, newest first', async () => {
      for (const name of ['a', 'b', 'c']) {
        await create({ name });
        server.operations.clock.advance(1);
      }
      const answer = await server.tenant.get('/sandboxpools?limit=1&offset=1');
      expect(answer.json).to.include({ total: 3, limit: 1, offset: 1 });
      expect(answer.json.items![0]!.name).to.equal('b');
      expect((await server.tenant.get('/sandboxpools?limit=1001')).status).to.equal(400);
    });

    it('can be filtered by phase', async () => {
      for (const name of ['a', 'b', 'c']) await create({ name });
      const { driver, settled, supervisor } = server.operations;
      await settled();
      const [one = ''] = supervisor
        .ids()
        .filter((id) => supervisor.sandbox(id)?.context.record?.poolName === 'b');
      driver.becomeUnavailable(one);
      await settled();
      const answer = await server.tenant.get('/sandboxpools?phase=Degraded');
      expect(answer.json).to.include({ total: 1, limit: 20, offset: 0 });
      expect(answer.json.items!.map(({ name }) => name)).to.deep.equal(['b']);
      expect((await server.tenant.get('/sandboxpools?phase=Failed')).json.total).to.equal(0);
      const refused = await server.tenant.get('/sandboxpools?phase=broken');
      expect(refused.status).to.equal(400);
      expect(refused.json.detail).to.include({ field: 'phase' });
    });

    it('use the namespace that an admin names, even for a repetition with a key', async () => {
      await create();
      await server.stranger.post('/sandboxpools', { name: 'shells', templateName: 'default' });
      const sync = async (namespace: string) => {
        const { status, json, headers } = await server.admin.post(
          `/sandboxpools/shells/sync-template?namespace=${namespace}`,
          undefined,
          { headers: { 'Idempotency-Key': 'once' } },
        );
        return [status, json.template?.namespace, headers['idempotency-replayed']];
      };
      expect(await sync('team-blue')).to.deep.equal([200, 'team-blue', undefined]);
      expect(await sync('team-red')).to.deep.equal([200, 'team-red', undefined]);
      expect(await sync('team-blue')).to.deep.equal([200, 'team-blue', 'true']);
    });

    it('truncate a long name in a 404', async () => {
      const { json } = await server.tenant.get(`/sandboxpools/${'x'.repeat(4_000)}`);
      expect(json.detail).to.include({ poolName: 'x'.repeat(512) });
    });

    it('show nothing to others, and everything to admins with all', async () => {
      await create();
      for (const client of [server.colleague, server.stranger]) {
        const answer = await client.get('/sandboxpools/shells');
        expect(answer.status).to.equal(404);
        expect(answer.json).to.deep.equal({
          error: 'pool not found',
          errorCode: 'POOL_NOT_FOUND',
          detail: {
            poolName: 'shells',
            hint: 'create a pool of your own with POST /v1/sandboxpools',
          },
        });
        expect((await client.get('/sandboxpools')).json.total).to.equal(0);
        expect((await client.get('/sandboxpools?all=true')).json.errorCode).to.equal(
          'ADMIN_REQUIRED',
        );
      }
      expect((await server.admin.get('/sandboxpools')).json.total).to.equal(0);
      expect((await server.admin.get('/sandboxpools?all=true')).json.total).to.equal(1);
      expect((await server.admin.get('/sandboxpools?all')).json.total).to.equal(1);
      expect((await server.admin.get('/sandboxpools?all=perhaps')).json.detail).to.deep.equal({
        field: 'all',
        allowed: ['true', 'false'],
      });
    });

    it('return 404 for an impossible name', async () => {
      for (const name of ['UPPER', 'a%2Fb', '%00', '%zz', 'a..b', '%F0%9F%92%A9', 'x'.repeat(64)]) {
        const answer = await server.tenant.get(`/sandboxpools/${name}`);
        expect([answer.status, answer.json.errorCode], name).to.deep.equal([404, 'POOL_NOT_FOUND']);
      }
    });
  });

  describe('PUT /sandboxpools/{name}', () => {
    it('changes nothing if the body is empty', async () => {
      await create();
      for (const body of [{}, undefined])
        expect((await server.tenant.put('/sandboxpools/shells', body)).json).to.deep.equal({
          template: POOL_ALONE,
        });
    });

    it('refuses replicas and overrides out of bounds', async () => {
      await create();
      for (const [body, field] of [
        [{ replicas: 10_001 }, 'replicas'],
        [{ replicas: true }, 'replicas'],
        [{ overrides: { image: '' } }, 'overrides.image'],
      ] as const) {
        expect((await server.tenant.put('/sandboxpools/shells', body)).json.detail!.field).to.equal(
          field,
        );
      }
      expect((await server.tenant.get('/sandboxpools/shells')).json).to.deep.equal({
        template: POOL_ALONE,
      });
    });
  });

  describe('DELETE /sandboxpools/{name}', () => {
    for (const [query, expected] of [
      ['', 'keep-running'],
      ['force=true', 'force'],
      ['force', 'force'],
      ['force=false', 'keep-running'],
    ] as const) {
      it(`interprets ?${query} as ${expected}`, async () => {
        await create();
        server.operations.records.pools.remove = hangs;
        expect((await server.tenant.delete(`/sandboxpools/shells?${query}`)).status).to.equal(200);
        expect(server.operations.pools.get('team-blue/shells')?.deleting).to.equal(expected);
      });
    }

    it('refuses other values of force, and pools of others', async () => {
      await create();
      expect(
        (await server.tenant.delete('/sandboxpools/shells?force=yes')).json.detail!.field,
      ).to.equal('force');
      expect((await server.stranger.delete('/sandboxpools/shells')).status).to.equal(404);
      expect(server.operations.pools.get('team-blue/shells')?.deleting).to.equal(false);
    });
  });
});
