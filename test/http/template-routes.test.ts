import { expect } from 'chai';
import { parse } from 'yaml';
import { anEngine } from '../support/harness/engine-operations.ts';
import { aServer, type TestServer } from './a-server.ts';

describe('templates over HTTP', () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await aServer({ operations: anEngine({ spec: null }) });
  });
  afterEach(() => server.stop());

  const document = (spec: object = {}, name = 'small') => ({
    apiVersion: 'sandpool.dev/v1alpha1',
    kind: 'SandboxTemplate',
    metadata: { name },
    spec: {
      description: 'half a cpu',
      containers: [
        { name: 'main', image: 'host', resources: { limits: { cpu: '500m', memory: '128Mi' } } },
      ],
      ...spec,
    },
  });
  const container = (part: object) =>
    document({ containers: [{ name: 'main', image: 'host', ...part }] });
  const create = (of: object = document()) =>
    server.admin.post('/admin/sandbox-templates', { crdJson: JSON.stringify(of) });
  const update = (body: object, headers: Readonly<Record<string, string>> = {}) =>
    server.admin.put('/admin/sandbox-templates/small', body, { headers });
  const shown = async () => (await server.tenant.get('/sandbox-templates/small')).json.template!;

  describe('POST /admin/sandbox-templates', () => {
    it('returns 201 with the template, which every tenant then sees', async () => {
      const answer = await create(document({ docs: '# Small', poolSizing: 'billed' }));

      expect(answer.status).to.equal(201);
      const { crdYaml, ...template } = answer.json.template!;
      expect(template).to.deep.equal({
        name: 'small',
        version: '1',
        description: 'half a cpu',
        createdAt: '2026-03-01T12:00:00.000Z',
        cpu: '500m',
        memory: '128Mi',
        containerImages: { main: 'host' },
        network: 'none',
        ports: {},
        docs: '# Small',
        poolSizing: 'billed',
      });
      expect(parse(String(crdYaml))).to.deep.equal(
        document({ docs: '# Small', poolSizing: 'billed' }),
      );
      expect(await shown()).to.deep.equal(answer.json.template);
      expect((await server.stranger.get('/sandbox-templates')).json).to.deep.equal({
        items: [answer.json.template],
        total: 1,
        limit: 20,
        offset: 0,
      });
    });

    it('accepts 256 KiB, and returns 413 for one byte more', async () => {
      const text = JSON.stringify(document());

      const padded = (bytes: number) =>
        server.admin.post('/admin/sandbox-templates', {
          crdJson: text + ' '.repeat(bytes - text.length),
        });
      expect((await padded(262_145)).json.errorCode).to.equal('PAYLOAD_TOO_LARGE');
      expect((await padded(262_144)).status).to.equal(201);
    });

    const FAULTS: readonly (readonly [string, string, unknown, string])[] = [
      ['no crdJson', 'crdJson', {}, 'is required'],
      ['what is no text', 'crdJson', { crdJson: document() }, 'must be a string'],
      ['what is no JSON', 'crdJson', { crdJson: '{' }, 'must be JSON'],
      ['a list', 'crdJson', { crdJson: '[]' }, 'must be an object'],
      [
        'a key twice',
        'crdJson.metadata.name',
        { crdJson: '{"metadata":{"name":"a","name":"b"}}' },
        'the key appears twice',
      ],
      [
        'a missing field',
        'crdJson.spec',
        { crdJson: JSON.stringify({ ...document(), spec: undefined }) },
        'is required',
      ],
      [
        'another kind',
        'crdJson.kind',
        { crdJson: JSON.stringify({ ...document(), kind: 'Pod' }) },
        'must be one of SandboxTemplate',
      ],
      [
        'a name that is no label',
        'crdJson.metadata.name',
        { crdJson: JSON.stringify(document({}, 'Small')) },
        'must be a DNS-1123 label: 1 to 63 of a-z, 0-9 and inner hyphens',
      ],
      [
        'an unknown field',
        'crdJson.spec.containers[0].imagePullPolicy',
        { crdJson: JSON.stringify(container({ imagePullPolicy: 'Always' })) },
        'unknown field spec.containers[0].imagePullPolicy',
      ],
      [
        'a path that climbs',
        'crdJson.spec.containers[0].workingDir',
        { crdJson: JSON.stringify(container({ workingDir: '/home/../etc' })) },
        'must be an absolute path without ..',
      ],
      [
        'what the driver can not run',
        'crdJson.spec.containers[0].image',
        { crdJson: JSON.stringify(container({ image: 'wrong' })) },
        "this daemon can't run it: only host is supported",
      ],
      [
        'a privileged container',
        'crdJson.spec.containers[0].securityContext.privileged',
        { crdJson: JSON.stringify(container({ securityContext: { privileged: true } })) },
        'is refused for safety: a privileged container is not isolated from its host',
      ],
      [
        'a name that no RuntimeClass can have',
        'crdJson.spec.runtimeClassName',
        { crdJson: JSON.stringify(document({ runtimeClassName: 'gVisor' })) },
        'must be a DNS-1123 subdomain: a-z, 0-9, inner hyphens and dots',
      ],
      [
        'users of the host',
        'crdJson.spec.hostUsers',
        { crdJson: JSON.stringify(document({ hostUsers: true })) },
        'must be one of false',
      ],
      [
        'a key that no label can have',
        'crdJson.spec.nodeSelector.a/b/c',
        { crdJson: JSON.stringify(document({ nodeSelector: { 'a/b/c': '' } })) },
        'must be the key of a label: NAME or DOMAIN/NAME',
      ],
      [
        "the host's network",
        'crdJson.spec.hostNetwork',
        { crdJson: JSON.stringify(document({ dnsPolicy: 'Default', hostNetwork: true })) },
        "is refused for safety: it would share the host's network",
      ],
      [
        'a path of the host',
        'crdJson.spec.volumes[1].hostPath',
        {
          crdJson: JSON.stringify(
            document({ volumes: [{ name: 'a' }, { name: 'b', hostPath: { path: '/' } }] }),
          ),
        },
        'is refused for safety: it would show files of the host',
      ],
      [
        'an account of the cluster',
        'crdJson.spec.serviceAccountName',
        { crdJson: JSON.stringify(document({ serviceAccountName: 'admin' })) },
        'is refused for safety: it would act as an account of the cluster',
      ],
      [
        'a capability',
        'crdJson.spec.containers[0].securityContext.capabilities.add',
        {
          crdJson: JSON.stringify(
            container({ securityContext: { capabilities: { add: ['SYS_ADMIN'] } } }),
          ),
        },
        'is refused for safety: sandboxes run without capabilities',
      ],
    ];

    for (const [what, field, body, problem] of FAULTS) {
      it(`returns 400 for ${what}, by its field`, async () => {
        const answer = await server.admin.post('/admin/sandbox-templates', body as object);

        expect([
          answer.status,
          answer.json.errorCode,
          answer.json.detail?.['field'],
          answer.json.error,
        ]).to.deep.equal([400, 'INVALID_ARGUMENT', field, `${field}: ${problem}`]);
        expect(server.operations.records.templates.writes).to.equal(0);
      });
    }
  });

  describe('GET /sandbox-templates', () => {
    it('pages, newest first', async () => {
      for (const name of ['a', 'b', 'c']) {
        await create(document({}, name));
        server.operations.clock.advance(1_000);
      }
      await create(document({}, 'd'));
      server.operations.clock.advance(-1_000);

      const { json } = await server.tenant.get('/sandbox-templates?limit=2&offset=1');

      expect(json.items?.map((item) => item['name'])).to.deep.equal(['c', 'b']);
      expect(json).to.include({ total: 4, limit: 2, offset: 1 });
    });

    it('returns 404 for an unknown template and an invalid name', async () => {
      for (const name of ['none', 'No-Name', '%00']) {
        const answer = await server.tenant.get(`/sandbox-templates/${name}`);
        expect([answer.status, answer.json]).to.deep.equal([
          404,
          { error: 'sandbox template not found', errorCode: 'SANDBOX_TEMPLATE_NOT_FOUND' },
        ]);
      }
    });

    it('shows that the source of a template from a file is global', async () => {
      await create();
      const record = server.operations.records.templates.records.get('small')!;
      await server.operations.records.templates.update({ ...record, sourceHash: 'abc' });

      expect(await shown()).to.include({ syncSource: 'global' });
    });
  });

  describe('PUT /admin/sandbox-templates/{name}', () => {
    beforeEach(() => create(document({ docs: 'old' })));

    it('changes the named fields, as a new version', async () => {
      const answer = await update({ description: 'other', poolSizing: 'free' });

      expect([answer.status, answer.json.template]).to.deep.equal([200, await shown()]);
      expect(answer.json.template).to.include({
        version: '2',
        description: 'other',
        docs: 'old',
        poolSizing: 'free',
        cpu: '500m',
      });
      expect((await update({ docs: '' })).json.template)
        .to.include({ version: '3' })
        .and.not.have.property('docs');
    });

    it('accepts another document, and keeps the texts that it does not name', async () => {
      const { template } = (
        await update({
          crdJson: JSON.stringify({
            ...document(),
            spec: { containers: [{ name: 'main', image: 'host' }], maxLifetime: '1h' },
          }),
        })
      ).json;

      expect(template).to.include({
        version: '2',
        description: 'half a cpu',
        docs: 'old',
        cpu: '1',
        memory: '256Mi',
      });
      expect(parse(String(template!['crdYaml'])).spec).to.include({
        maxLifetime: '1h',
        docs: 'old',
      });
    });

    it('creates no version for an unchanged document', async () => {
      for (const body of [
        {},
        { description: 'half a cpu' },
        { crdJson: JSON.stringify(document()) },
      ]) {
        expect((await update(body)).json.template).to.include({ version: '1' });
      }
      expect(server.operations.records.templates.writes).to.equal(1);
    });

    it('returns 400 for another name, a wrong value and an unsafe document, without a change', async () => {
      for (const [body, field] of [
        [{ crdJson: JSON.stringify(document({}, 'other')) }, 'crdJson.metadata.name'],
        [{ poolSizing: 'cheap' }, 'poolSizing'],
        [{ docs: 'x'.repeat(65_537) }, 'docs'],
        [{ crdJson: JSON.stringify(document({ hostPID: true })) }, 'crdJson.spec.hostPID'],
      ] as const) {
        const answer = await update(body);
        expect([answer.status, answer.json.detail?.['field']]).to.deep.equal([400, field]);
      }
      expect((await shown())['version']).to.equal('1');
    });

    it('applies to concurrent changes of others', async () => {
      const { templates } = server.operations.records;
      const read = templates.get.bind(templates);
      let raced = false;
      templates.get = async (name) => {
        const record = await read(name);
        if (!raced && record) {
          raced = true;
          await templates.update({ ...record, version: '2' });
        }
        return record;
      };

      expect((await update({ description: 'other' })).json.template).to.include({
        version: '3',
        description: 'other',
      });
    });
  });
});
