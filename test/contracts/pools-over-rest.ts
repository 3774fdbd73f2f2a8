import { expect } from 'chai';
import { randomBytes } from 'node:crypto';
import { parse } from 'yaml';
import { eventually } from '../support/harness/eventually.ts';
import type { HttpAnswer, HttpClient } from '../support/harness/http-client.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';

export interface PoolsUnderTest {
  /** Of one tenant; one of each replica. */
  readonly tenants: readonly HttpClient[];
  /** What templates can name here. */
  readonly image: string;
  /** A volume of the tenant's namespace. */
  readonly claimName: string;
}

type Shown = Readonly<Record<string, unknown>> & {
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
};

/**
 * What pools promise their owner on each assembly, on whichever replica is asked. The catalogue is
 * the one that is shipped.
 */
export const poolsSuite = (name: string, of: () => PoolsUnderTest): void => {
  describe(`pools over REST: ${name}`, function () {
    let turn = 0;
    /** The next replica's. */
    const tenant = (): HttpClient => {
      const { tenants } = of();
      turn += 1;
      return tenants[turn % tenants.length]!; // there is one
    };
    const made = new Set<string>();
    const aName = (): string => {
      const pool = `made-${randomBytes(4).toString('hex')}`;
      made.add(pool);
      return pool;
    };
    afterEach(async () => {
      for (const pool of made)
        await eventually(
          async () =>
            [200, 404].includes((await tenant().delete(`/sandboxpools/${pool}?force=true`)).status),
          `${pool} goes`,
        );
      made.clear();
    });

    const aTemplate = (more: object = {}): object => ({
      containers: [
        { name: 'main', image: of().image, resources: { limits: { cpu: '100m', memory: '64Mi' } } },
      ],
      ...more,
    });
    const create = (pool: string, body: object): Promise<HttpAnswer> =>
      tenant().post('/sandboxpools', { name: pool, replicas: 0, ...body });
    const created = async (body: object): Promise<string> => {
      const pool = aName();
      const answer = await create(pool, body);
      expect(answer.status, answer.text).to.equal(201);
      return pool;
    };
    const update = async (pool: string, body: object): Promise<Shown> => {
      const answer = await tenant().put(`/sandboxpools/${pool}`, body);
      expect(answer.status, answer.text).to.equal(200);
      return (answer.json.template ?? {}) as Shown;
    };
    const shown = async (pool: string): Promise<Shown> =>
      (await tenant().get(`/sandboxpools/${pool}`)).json.template as Shown;
    const filled = (pool: string, count = 1): Promise<void> =>
      eventually(async () => {
        const { status } = await shown(pool);
        return (
          status?.['idleReplicas'] === count &&
          status['startingReplicas'] === 0 &&
          status['phase'] === 'Ready'
        );
      }, `${pool} has ${count}`);
    const fieldOf = ({ status, json }: HttpAnswer): unknown => [
      status,
      json.errorCode,
      json.detail?.['field'],
    ];
    const claimed = async (pool: string): Promise<string> =>
      (await untilAnswered(201, () => tenant().post('/sandboxes', { poolName: pool }))).json
        .sandbox?.['sandboxId'] ?? '';

    it('are created from an inline template, and filled', async () => {
      const pool = await created({ template: aTemplate(), replicas: 1 });

      const { spec, annotations, ...rest } = await shown(pool);
      expect(spec).to.deep.equal({ replicas: 1, template: aTemplate() });
      expect(annotations).to.deep.equal({});
      expect(rest).to.include({ cpu: '100m', memory: '64Mi' });
      expect(rest['templateVersion'], 'of an inline template')
        .to.be.a('string')
        .that.equals(rest.status?.['updateRevision']);
      await filled(pool);
      await claimed(pool);
    });

    it('do not own sandboxes that an earlier pool of the same name left running', async () => {
      const pool = await created({ template: aTemplate(), replicas: 1 });
      await filled(pool);
      const old = await claimed(pool);
      const listed = async (phase = ''): Promise<readonly unknown[]> =>
        (await tenant().get(`/sandboxes?poolName=${pool}${phase}`)).json.items?.map(
          ({ sandboxId }) => sandboxId,
        ) ?? [];
      await eventually(async () => (await listed()).includes(old), 'the sandbox is listed');

      expect((await tenant().delete(`/sandboxpools/${pool}`)).status).to.equal(200);
      for (const at of of().tenants)
        await eventually(
          async () => (await at.get(`/sandboxpools/${pool}`)).status === 404,
          'the pool is gone',
        );
      await eventually(
        async () => (await listed()).join() === old,
        'it is listed, of a pool that is gone',
      );
      await untilAnswered(201, () => create(pool, { template: aTemplate() }));
      for (const at of of().tenants)
        await eventually(
          async () => (await at.get(`/sandboxpools/${pool}`)).status === 200,
          'the new pool is known',
        );

      for (const phase of ['', '&phase=Running'])
        await eventually(
          async () => (await listed(phase)).length === 0,
          `the new pool has none${phase}`,
        );
      expect((await shown(pool)).status).to.include({ runningReplicas: 0, stoppingReplicas: 0 });
      expect((await tenant().delete(`/sandboxpools/${pool}?force=true`)).status).to.equal(200);
      expect((await tenant().get(`/sandboxes/${old}`)).json.sandbox).to.include({
        status: 'Running',
      });
      await tenant().delete(`/sandboxes/${old}`);
    });

    it('are created from an image only, with the requested size', async () => {
      const pool = await created({ overrides: { image: of().image }, cpu: '50m', memory: '32Mi' });
      expect(await shown(pool)).to.include({ cpu: '50m', memory: '32Mi' });
    });

    it('have the size of an instance type, times an allowed multiplier', async () => {
      const pool = await created({ template: aTemplate(), instanceType: 'small', multiplier: 2 });
      expect(await shown(pool)).to.include({ cpu: '1', memory: '512Mi' });

      const beyond = await tenant().put(`/sandboxpools/${pool}`, { multiplier: 4.5 });
      expect(fieldOf(beyond)).to.deep.equal([400, 'INVALID_ARGUMENT', 'multiplier']);
      expect(beyond.json.error).to.include('at most 4').and.include('maxMultiplier');
      const unknown = await create(aName(), { template: aTemplate(), instanceType: 'gigantic' });
      expect(fieldOf(unknown)).to.deep.equal([400, 'INVALID_ARGUMENT', 'instanceType']);
      expect(unknown.json.detail?.['allowed']).to.include('small');
      expect(await shown(pool)).to.include({ cpu: '1' });
    });

    it('refuse dangerous, unknown or missing fields by path', async () => {
      const container = (more: object): object => ({
        template: { containers: [{ name: 'main', image: of().image, ...more }] },
      });
      for (const [body, path] of [
        [{}, 'templateName'],
        [{ cpu: '1' }, 'templateName'],
        [container({ privileged: true }), 'template.containers[0]'],
        [container({ colour: 'red' }), 'template.containers[0]'],
        [{ template: aTemplate({ hostNetwork: true }) }, 'template'],
        [container({ workingDir: '/a/../b' }), 'template.containers[0].workingDir'],
        [
          { template: aTemplate({ endpoints: [{ name: 'web', port: 'nowhere' }] }) },
          'template.endpoints[0].port',
        ],
        [{ template: aTemplate(), minReplicas: 1 }, 'replicas'],
        [{ template: aTemplate(), maxReplicas: 2, minReplicas: 3 }, 'minReplicas'],
        [
          {
            template: aTemplate(),
            overrides: { volumes: [{ claimName: 'nobodys', mountPath: '/data' }] },
          },
          'overrides.volumes[0].claimName',
        ],
      ] as const) {
        const [status, code, field] = fieldOf(await create(aName(), body)) as readonly [
          number,
          string,
          string,
        ];
        expect([status, code], JSON.stringify(body)).to.deep.equal([400, 'INVALID_ARGUMENT']);
        expect(field).to.satisfy(
          (given: string) => given.startsWith(path),
          `${JSON.stringify(body)}: ${field}`,
        );
      }
    });

    it('list the existing templates if an unknown one is named', async () => {
      const pool = await created({ template: aTemplate() });
      for (const answer of [
        await create(aName(), { templateName: 'no-such' }),
        await tenant().put(`/sandboxpools/${pool}`, { templateName: 'no-such' }),
      ]) {
        expect([answer.status, answer.json.error]).to.deep.equal([
          404,
          'sandbox template not found',
        ]);
        expect(answer.json.detail).to.have.keys('availableTemplates', 'hint');
      }
    });

    it('change only in named fields, and not at all by an empty patch', async () => {
      const pool = await created({
        template: aTemplate(),
        labels: { a: 'b' },
        overrides: { defaultIdleTimeout: '5m', gateway: { enabled: true } },
        maxReplicas: 5,
      });
      const before = await shown(pool);

      await update(pool, {});
      expect(await shown(pool)).to.deep.equal(before);
      await update(pool, {
        cpu: '50m',
        overrides: { defaultIdleTimeout: '6m' },
        updateStrategy: { maxUnavailable: '1' },
      });
      const after = await shown(pool);
      expect(after).to.include({ cpu: '50m', memory: '64Mi' });
      expect(after.spec).to.deep.equal({
        ...before.spec,
        cpu: '50m',
        overrides: { defaultIdleTimeout: '6m', gateway: { enabled: true } },
        updateStrategy: { autoUpdate: true, maxUnavailable: '1' },
      });
      expect(after['labels']).to.deep.equal({ a: 'b' });
      expect(fieldOf(await tenant().put(`/sandboxpools/${pool}`, { replicas: 6 }))).to.deep.equal([
        400,
        'INVALID_ARGUMENT',
        'replicas',
      ]);
    });

    it("return to the template's value if a patch sets null", async () => {
      const registries = [{ registry: 'r.example', username: 'u', password: 'hunter2' }];
      const set = {
        cpu: '50m',
        inlineResources: { limits: { memory: '96Mi' } },
        minReplicas: 0,
        maxReplicas: 5,
        access: 'team',
        labels: { a: 'b' },
        annotations: { c: 'd' },
        updateStrategy: { autoUpdate: true, maxUnavailable: '1' },
        overrides: {
          image: of().image,
          defaultIdleTimeout: '5m',
          gateway: { enabled: false },
          volumes: [{ claimName: of().claimName, mountPath: '/data' }],
        },
      };
      const pool = await created({ template: aTemplate({ idleTimeout: '7m' }), ...set });
      const idleTimeoutOf = async (): Promise<unknown> => {
        const { template } = (await shown(pool)).status ?? {};
        return (template as { idleTimeout: string }).idleTimeout;
      };
      expect(await shown(pool)).to.include({ cpu: '50m', memory: '96Mi' });
      expect(await idleTimeoutOf()).to.equal('5m');

      await update(pool, { overrides: { imagePullSecret: { registries } } });
      expect((await shown(pool)).spec?.['overrides']).to.include({
        imagePullSecretConfigured: true,
      });

      await update(pool, {
        cpu: null,
        overrides: { defaultIdleTimeout: null, imagePullSecret: null },
      });
      const less = await shown(pool);
      expect([less['cpu'], less['memory'], await idleTimeoutOf()]).to.deep.equal([
        '100m',
        '96Mi',
        '7m',
      ]);
      const { cpu: _cpu, labels, annotations, ...rest } = set;
      const { defaultIdleTimeout: _timeout, ...overrides } = set.overrides;
      expect(less).to.deep.include({ labels, annotations });
      expect(less.spec).to.deep.equal({
        replicas: 0,
        template: aTemplate({ idleTimeout: '7m' }),
        ...rest,
        overrides,
      });

      await update(pool, Object.fromEntries(Object.keys(set).map((field) => [field, null])));
      const { spec, ...plain } = await shown(pool);
      expect(spec).to.deep.include({
        replicas: 0,
        template: aTemplate({ idleTimeout: '7m' }),
      });
      expect(spec).to.not.have.any.keys(...Object.keys(rest));
      expect(plain).to.deep.include({ cpu: '100m', memory: '64Mi', labels: {}, annotations: {} });
      for (const field of ['replicas', 'templateName', 'template'])
        expect(
          fieldOf(await tenant().put(`/sandboxpools/${pool}`, { [field]: null })),
          field,
        ).to.deep.equal([400, 'INVALID_ARGUMENT', field]);
    });

    it('show the fields of their template with their overrides', async () => {
      const pool = await created({
        template: aTemplate({ idleTimeout: '7m' }),
        overrides: { defaultIdleTimeout: '5m' },
      });

      const { template } = (await shown(pool)).status ?? {};

      expect(template).to.deep.include({ idleTimeout: '5m', network: 'none' });
      const { containers } = template as { containers: readonly object[] };
      expect(containers).to.have.length(1);
      expect(containers[0]).to.deep.include({
        name: 'main',
        image: of().image,
        resources: { limits: { cpu: '100m', memory: '64Mi' } },
      });
      await eventually(async () => {
        const { items = [] } = (await tenant().get('/sandboxpools?limit=200')).json;
        const listed = items.find((item) => item['name'] === pool);
        if (listed)
          expect(listed['status']).to.be.an('object').that.does.not.have.property('template');
        return listed !== undefined;
      }, 'another replica lists it');
    });

    it('start instances of the latest revision', async () => {
      const pool = await created({ template: aTemplate(), replicas: 1 });
      await filled(pool);
      await update(pool, { memory: '96Mi' });

      await eventually(async () => {
        const { items = [] } = (await tenant().get(`/sandboxes?phase=Idle&poolName=${pool}`)).json;
        return items.length === 1 && items[0]?.['memory'] === '96Mi';
      }, 'the idle one is of the new size');
    });

    it('wait for sync-template without autoUpdate, whose preview shows the effect without a write', async () => {
      const pool = await created({
        template: aTemplate({ idleTimeout: '1m' }),
        updateStrategy: { autoUpdate: false },
        overrides: { envd: { verbose: true } },
      });
      await update(pool, { memory: '96Mi' });
      const before = await shown(pool);
      expect([before['memory'], before.spec?.['memory']]).to.deep.equal(['64Mi', '96Mi']);

      const preview = await tenant().post(`/sandboxpools/${pool}/sync-template/preview`);
      expect(preview.status, preview.text).to.equal(200);
      const { specYaml, version } = JSON.parse(preview.text) as {
        specYaml: string;
        version: string;
      };
      expect(parse(specYaml)).to.deep.include({
        spec: {
          containers: [
            {
              name: 'main',
              image: of().image,
              resources: { limits: { cpu: '100m', memory: '96Mi' } },
            },
          ],
          idleTimeout: '1m',
          overrides: { envd: { verbose: true } },
        },
      });
      expect(version).to.be.a('string').that.is.not.empty;
      expect(await shown(pool)).to.deep.equal(before);

      const synced = await tenant().post(`/sandboxpools/${pool}/sync-template`);
      expect(synced.status, synced.text).to.equal(200);
      expect(synced.headers).to.include.keys('deprecation', 'link');
      expect(synced.json.template).to.deep.include({ memory: '96Mi', spec: before.spec });
      for (const path of ['sync-template', 'sync-template/preview'])
        expect((await tenant().post(`/sandboxpools/none/${path}`)).json).to.nested.include({
          error: 'pool not found',
          errorCode: 'POOL_NOT_FOUND',
          'detail.poolName': 'none',
        });
    });

    it('publish their endpoints by default', async () => {
      for (const [enabled, names] of [
        [true, ['web']],
        [false, []],
      ] as const) {
        const pool = await created({
          template: aTemplate({ endpoints: [{ name: 'web', port: 8080 }] }),
          replicas: 1,
          overrides: { gateway: { enabled } },
        });
        const answer = await tenant().get(`/sandboxes/${await claimed(pool)}`);
        expect(Object.keys(answer.json.sandbox?.['endpoints'] ?? {})).to.deep.equal(names);
      }
    });

    it('accept registry passwords, show that they have them, and never show them', async () => {
      const secret = `hunter-${randomBytes(6).toString('hex')}`;
      const imagePullSecret = {
        registries: [{ registry: 'registry.example', username: 'ann', password: secret }],
      };
      const pool = aName();
      const answers = [
        await create(pool, { template: aTemplate(), overrides: { imagePullSecret } }),
        await tenant().get(`/sandboxpools/${pool}`),
        await tenant().put(`/sandboxpools/${pool}`, { overrides: { imagePullSecret } }),
        await tenant().post(`/sandboxpools/${pool}/sync-template/preview`),
      ];

      for (const { status, text } of answers) {
        expect(status, text).to.be.oneOf([200, 201]);
        expect(text).to.contain('imagePullSecretConfigured').and.not.contain(secret);
      }
      const without = await update(pool, { overrides: { imagePullSecret: { registries: [] } } });
      expect(without.spec?.['overrides']).to.deep.equal({ imagePullSecretConfigured: false });
    });

    it('mount the volumes of their namespace', async () => {
      const volumes = [{ claimName: of().claimName, mountPath: '/data', readOnly: true }];
      const pool = await created({ template: aTemplate(), replicas: 1, overrides: { volumes } });
      await filled(pool);
      expect((await shown(pool)).spec?.['overrides']).to.deep.equal({ volumes });
    });
  });
};
