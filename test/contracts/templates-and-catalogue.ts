import { expect } from 'chai';
import { randomBytes } from 'node:crypto';
import { parse } from 'yaml';
import { eventually } from '../support/harness/eventually.ts';
import type { HttpAnswer, HttpClient } from '../support/harness/http-client.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';

export interface DeploymentUnderTest {
  /** Of an admin; one of each replica. */
  readonly admins: readonly HttpClient[];
  /** Of a tenant; the same. */
  readonly tenants: readonly HttpClient[];
  /** Of another tenant, whose namespace has no volumes. */
  readonly stranger: HttpClient;
  /** What templates can name here. */
  readonly image: string;
  /** The volumes of the tenant's namespace, as they are shown, but for their capacity. */
  readonly volumes: readonly Readonly<Record<string, unknown>>[];
  /** Makes one more volume in the tenant's namespace, `passing`, and takes it away again. */
  readonly makeVolume: () => Promise<void>;
  readonly removeVolume: () => Promise<void>;
}

interface ShownStatus {
  readonly phase: string;
  readonly idleReplicas: number;
  readonly outdatedReplicas: number;
  readonly updateRevision: string;
  readonly conditions: readonly {
    readonly type: string;
    readonly status: string;
    readonly reason: string;
    readonly message: string;
  }[];
}

/**
 * What templates, and the catalogue of what is on offer, promise on each assembly, on whichever
 * replica is asked.
 */
export const templatesAndCatalogueSuite = (name: string, of: () => DeploymentUnderTest): void => {
  describe(`templates over REST: ${name}`, function () {
    let turn = 0;
    /** The next replica's. */
    const next = (clients: readonly HttpClient[]): HttpClient => {
      turn += 1;
      return clients[turn % clients.length]!; // there is one
    };
    const admin = (): HttpClient => next(of().admins);
    const tenant = (): HttpClient => next(of().tenants);

    /** Templates belong to no namespace: other suites' are beside them. */
    const made = new Set<string>();
    const aName = (): string => {
      const template = `made-${randomBytes(4).toString('hex')}`;
      made.add(template);
      return template;
    };
    after(async () => {
      for (const template of made) await admin().delete(`/admin/sandbox-templates/${template}`);
    });
    const aDocument = (template: string, spec: object = {}) => ({
      apiVersion: 'sandpool.dev/v1alpha1',
      kind: 'SandboxTemplate',
      metadata: { name: template },
      spec: {
        description: 'made over REST',
        containers: [
          {
            name: 'main',
            image: of().image,
            resources: { limits: { cpu: '100m', memory: '64Mi' } },
          },
        ],
        ...spec,
      },
    });
    const create = (template: string, spec: object = {}): Promise<HttpAnswer> =>
      admin().post('/admin/sandbox-templates', {
        crdJson: JSON.stringify(aDocument(template, spec)),
      });
    const created = async (spec: object = {}): Promise<string> => {
      const template = aName();
      const answer = await create(template, spec);
      expect(answer.status, answer.text).to.equal(201);
      return template;
    };
    const shown = async (template: string): Promise<Readonly<Record<string, unknown>>> => {
      const answer = await tenant().get(`/sandbox-templates/${template}`);
      expect(answer.status, answer.text).to.equal(200);
      return answer.json.template ?? {};
    };
    const update = (template: string, body: object): Promise<HttpAnswer> =>
      admin().put(`/admin/sandbox-templates/${template}`, body);

    it('appear completely at once when created', async () => {
      const template = aName();

      const answer = await create(template, {
        docs: '# It',
        poolSizing: 'free',
        idleTimeout: '5m',
      });

      expect(answer.status, answer.text).to.equal(201);
      const { crdYaml, createdAt, ...rest } = await shown(template);
      expect(rest).to.deep.equal({
        name: template,
        version: '1',
        description: 'made over REST',
        docs: '# It',
        poolSizing: 'free',
        cpu: '100m',
        memory: '64Mi',
        containerImages: { main: of().image },
        network: 'none',
        ports: {},
      });
      expect(parse(String(crdYaml))).to.deep.equal(
        aDocument(template, { docs: '# It', poolSizing: 'free', idleTimeout: '5m' }),
      );
      expect(createdAt).to.equal(answer.json.template?.['createdAt']);
      expect((await create(template)).json.errorCode).to.equal('ALREADY_EXISTS');
    });

    it('are listed first when new', async () => {
      await new Promise((resolve) => {
        setTimeout(resolve, 1_100); // the clocks of replicas differ by less
      });
      const template = await created();

      for (const client of of().tenants) {
        await eventually(
          async () =>
            (await client.get('/sandbox-templates?limit=1')).json.items?.[0]?.['name'] === template,
          'it is listed first',
        );
        const { json } = await client.get('/sandbox-templates?limit=1000');
        expect(json.total).to.equal(json.items?.length);
      }
    });

    it('get a version per change, and none for an empty change', async () => {
      const template = await created({ docs: 'old' });

      expect((await update(template, { description: 'other' })).json.template).to.include({
        version: '2',
        description: 'other',
        docs: 'old',
      });
      expect((await update(template, {})).json.template).to.include({ version: '2' });
      expect(
        (
          await update(template, {
            crdJson: JSON.stringify(aDocument(template, { maxLifetime: '1h' })),
          })
        ).json.template,
      ).to.include({ version: '3', description: 'made over REST', docs: 'old' });
      expect(await shown(template)).to.include({ version: '3' });
    });

    it('keep all of 12 simultaneous changes', async () => {
      const template = await created();

      const answers = await Promise.all(
        Array.from({ length: 12 }, (_, n) =>
          untilAnswered(200, () =>
            update(
              template,
              n % 2 === 0 ? { docs: `docs ${n}` } : { description: `description ${n}` },
            ),
          ),
        ),
      );

      expect(new Set(answers.map(({ json }) => json.template?.['version'])).size).to.equal(12);
      expect(await shown(template)).to.include({ version: '13' });
    });

    it('accept one of two changes with the same If-Match', async () => {
      const template = await created();
      const tag = String((await tenant().get(`/sandbox-templates/${template}`)).headers['etag']);

      const answers = await Promise.all(
        ['one', 'two'].map((description) =>
          admin().put(
            `/admin/sandbox-templates/${template}`,
            { description },
            { headers: { 'If-Match': tag } },
          ),
        ),
      );

      expect(answers.map(({ status }) => status).sort((a, b) => a - b)).to.deep.equal([200, 412]);
    });

    it('can be used in pools as soon as they exist, and cannot be deleted while used', async () => {
      const template = await created();
      const pool = await untilAnswered(201, async () => {
        const answer = await tenant().post('/sandboxpools', {
          name: template,
          templateName: template,
          replicas: 0,
        });
        // a first use may be counted for a while, but the template is there
        expect(answer.status, answer.text).to.not.equal(404);
        return answer;
      });

      const refused = await admin().delete(`/admin/sandbox-templates/${template}`);

      expect([refused.status, refused.json.errorCode]).to.deep.equal([409, 'TEMPLATE_IN_USE']);
      expect(refused.json.detail?.['pools']).to.deep.equal([
        { name: template, namespace: pool.json.template?.['namespace'] },
      ]);
      await untilAnswered(200, () => tenant().delete(`/sandboxpools/${template}`));
      expect(
        (await untilAnswered(200, () => admin().delete(`/admin/sandbox-templates/${template}`)))
          .json,
      ).to.deep.equal({ name: template, status: 'deleted' });
      expect((await tenant().get(`/sandbox-templates/${template}`)).status).to.equal(404);
      for (const client of of().tenants) {
        await eventually(
          async () =>
            !(await client.get('/sandbox-templates?limit=1000')).json.items?.some(
              (item) => item['name'] === template,
            ),
          'no list shows it',
        );
      }
    });

    describe('that an admin changes', () => {
      const pools: string[] = [];
      const pool = async (template: string, more: object = {}): Promise<string> => {
        const poolName = `of-${template}`;
        pools.push(poolName);
        await untilAnswered(201, () =>
          tenant().post('/sandboxpools', {
            name: poolName,
            templateName: template,
            replicas: 1, // of more, the first of a rollout is first to live for 10 s
            ...more,
          }),
        );
        return poolName;
      };
      const poolOf = async (poolName: string): Promise<Readonly<Record<string, unknown>>> =>
        (await untilAnswered(200, () => tenant().get(`/sandboxpools/${poolName}`))).json.template ??
        {};
      const statusOf = async (poolName: string): Promise<ShownStatus> =>
        (await poolOf(poolName))['status'] as ShownStatus;
      /** Waits until it is so on every replica. */
      const everywhere = async (
        isSo: (client: HttpClient) => Promise<boolean>,
        what: string,
      ): Promise<void> => {
        for (const client of of().tenants) await eventually(() => isSo(client), what);
      };
      const resolvedIn = ({ conditions }: ShownStatus) =>
        conditions.find(({ type }) => type === 'TemplateResolved');
      const idleIn = async (client: HttpClient, poolName: string): Promise<readonly unknown[]> =>
        (await client.get(`/sandboxes?phase=Idle&poolName=${poolName}`)).json.items?.map(
          ({ sandboxId }) => sandboxId,
        ) ?? [];
      const shownBy = async (client: HttpClient, poolName: string) => {
        const { json } = await client.get(`/sandboxpools/${poolName}`);
        return {
          templateVersion: json.template?.['templateVersion'],
          status: json.template?.['status'] as ShownStatus | undefined,
        };
      };
      afterEach(async () => {
        for (const poolName of pools.splice(0)) await tenant().delete(`/sandboxpools/${poolName}`);
      });

      it('reach their pools automatically, and idle instances', async () => {
        const template = await created();
        const poolName = await pool(template);
        let before: readonly unknown[] = [];
        await everywhere(
          async (client) => (before = await idleIn(client, poolName)).length === 1,
          'it is filled',
        );
        const { updateRevision } = await statusOf(poolName);

        const { json } = await update(template, {
          crdJson: JSON.stringify(aDocument(template, { idleTimeout: '7m' })),
        });
        expect(json.template).to.include({ version: '2' });

        await everywhere(
          async (client) => (await shownBy(client, poolName)).templateVersion === '2',
          'it has the new version',
        );
        await everywhere(async (client) => {
          const { status } = await shownBy(client, poolName);
          return (
            status?.phase === 'Ready' &&
            status.outdatedReplicas === 0 &&
            status.idleReplicas === 1 &&
            resolvedIn(status)?.status === 'True'
          );
        }, 'it is replaced');
        const after = await statusOf(poolName);
        expect(after.updateRevision).to.not.equal(updateRevision);
        expect(after).to.include({ observedTemplateVersion: '2' });
        expect(resolvedIn(after)).to.deep.include({
          status: 'True',
          reason: 'Resolved',
          message: '',
        });
        await everywhere(async (client) => {
          const idle = await idleIn(client, poolName);
          return idle.length === 1 && !before.includes(idle[0]);
        }, 'the new one is listed alone');
      });

      it('do not change a pool that cannot apply them, which gives the reason on every replica', async () => {
        const template = await created();
        await of().makeVolume();
        await everywhere(
          async (client) => (await client.get('/volumes')).text.includes('passing'),
          'it is listed',
        );
        const poolName = await pool(template, {
          replicas: 0,
          overrides: { volumes: [{ claimName: 'passing', mountPath: '/data' }] },
        });
        const { updateRevision } = await statusOf(poolName);
        await of().removeVolume();
        await everywhere(
          async (client) => !(await client.get('/volumes')).text.includes('passing'),
          'it is gone',
        );

        await update(template, {
          crdJson: JSON.stringify(aDocument(template, { idleTimeout: '7m' })),
        });

        for (const client of of().tenants) {
          await eventually(
            async () =>
              (await client.get(`/sandboxpools/${poolName}`)).text.includes(
                'must be one of GET /volumes',
              ),
            'it says so',
          );
        }
        const status = await statusOf(poolName);
        expect(resolvedIn(status)).to.deep.include({
          status: 'False',
          reason: 'SourceInvalid',
          message: 'overrides.volumes[0].claimName: must be one of GET /volumes',
        });
        expect(status).to.include({ updateRevision, observedTemplateVersion: '2' });
        expect(await poolOf(poolName)).to.include({ templateVersion: '1' });

        await untilAnswered(200, () =>
          tenant().put(`/sandboxpools/${poolName}`, { overrides: { volumes: [] } }),
        );
        await everywhere(async (client) => {
          const { status, templateVersion } = await shownBy(client, poolName);
          return (
            status !== undefined && resolvedIn(status)?.status === 'True' && templateVersion === '2'
          );
        }, 'it can');
      });
    });
  });

  catalogueSuite(name, of);
};

const catalogueSuite = (name: string, of: () => DeploymentUnderTest): void => {
  describe(`the catalogue: ${name}`, () => {
    const listOf = async (
      client: HttpClient,
      path: string,
    ): Promise<readonly Readonly<Record<string, unknown>>[]> => {
      const { status, text, json } = await client.get(path);
      expect(status, text).to.equal(200);
      expect(json.total).to.equal(json.items?.length);
      return json.items ?? [];
    };

    it('has the shipped instance types', async () => {
      for (const client of of().tenants) {
        const types = await listOf(client, '/instancetypes');
        expect(types.map((item) => item['name'])).to.deep.equal([
          'small',
          'standard',
          'large-memory',
        ]);
        for (const type of types) {
          expect(type).to.have.all.keys(
            'name',
            'showName',
            'description',
            'baseResources',
            'maxMultiplier',
            'extensions',
          );
          expect(type['baseResources']).to.have.all.keys('requests', 'limits');
        }
      }
    });

    it('shows tenants the volumes of their own namespace only', async () => {
      for (const client of of().tenants) {
        const volumes = await listOf(client, '/volumes?namespace=default');
        expect(volumes.map(({ capacity: _capacity, ...volume }) => volume)).to.deep.equal(
          of().volumes,
        );
        for (const { capacity } of volumes) expect(capacity).to.match(/^\d+[MG]i$/);
      }
      expect(await listOf(of().stranger, '/volumes')).to.deep.equal([]);
    });

    it('shows the feature gates', async () => {
      const { text } = await of().stranger.get('/feature-gates');

      expect(JSON.parse(text)).to.include({
        volumes: true,
        instanceType: true,
        terminal: true,
        exec: true,
        logs: true,
        quotas: true,
        multiCluster: false,
      });
    });

    it('lists this cluster only', async () => {
      const before = Date.now();
      const [cluster, ...others] = await listOf(of().stranger, '/clusters');

      expect(cluster).to.include({ clusterID: 'local', isLocal: true, status: 'Connected' });
      expect(Date.parse(String(cluster?.['lastHeartbeat']))).to.be.within(
        before - 60_000,
        Date.now() + 60_000,
      );
      expect(others).to.deep.equal([]);
    });
  });

  describe(`statistics: ${name}`, function () {
    it('count live and finished sandboxes, the same on every replica', async () => {
      const [admin] = of().admins;
      const [tenant] = of().tenants;
      if (!admin || !tenant) throw new Error('there is one of each');
      const counts = async (client: HttpClient): Promise<Counts> =>
        (
          JSON.parse((await client.get('/admin/statistics/sandboxes')).text) as {
            readonly statistics: Counts;
          }
        ).statistics;
      const templateName = `counted-${randomBytes(4).toString('hex')}`;
      const { namespace } = await ofTemplate(admin, tenant, templateName, of().image);
      let before = await counts(admin);
      await eventually(
        async () => ((before = await counts(admin)).byStatus['Stopping'] ?? 0) === 0,
        'nothing of others is about to complete',
      );

      const { json } = await untilAnswered(201, () =>
        tenant.post('/sandboxes', { poolName: templateName }),
      );
      const id = json.sandbox?.['sandboxId'] ?? '';
      await untilAnswered(200, () => tenant.delete(`/sandboxes/${id}`));

      for (const client of of().admins) {
        await eventually(async () => {
          const { byStatus, byNamespace, total } = await counts(client);
          expect(total).to.equal(Object.values(byStatus).reduce((sum, count) => sum + count, 0));
          return (
            byStatus['Completed'] === (before.byStatus['Completed'] ?? 0) + 1 &&
            (byNamespace[namespace] ?? 0) >= 1
          );
        }, 'it counts as completed, in its namespace');
      }
      await tenant.delete(`/sandboxpools/${templateName}?force=true`);
      await admin.delete(`/admin/sandbox-templates/${templateName}`);
    });
  });
};

interface Counts {
  readonly total: number;
  readonly byStatus: Readonly<Record<string, number>>;
  readonly byNamespace: Readonly<Record<string, number>>;
}

/** A template and a pool of one instance, both of this name. */
const ofTemplate = async (
  admin: HttpClient,
  tenant: HttpClient,
  name: string,
  image: string,
): Promise<{ readonly namespace: string }> => {
  const document = {
    apiVersion: 'sandpool.dev/v1alpha1',
    kind: 'SandboxTemplate',
    metadata: { name },
    spec: { containers: [{ name: 'main', image, command: ['/bin/sleep', 'infinity'] }] },
  };
  await admin.post('/admin/sandbox-templates', { crdJson: JSON.stringify(document) });
  const { json } = await untilAnswered(201, () =>
    tenant.post('/sandboxpools', { name, templateName: name, replicas: 1 }),
  );
  return { namespace: String(json.template?.['namespace']) };
};
