import { expect } from 'chai';
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';

const HOST_NETWORK = {
  network: 'host',
  containers: [{ name: 'main', image: 'host', command: ['sleep', 'infinity'] }],
};
const withImage = (image: string) => ({
  containers: [{ name: 'main', image, command: ['sleep', 'infinity'] }],
});

describe('the settings for names in pools', function () {
  let daemon: DaemonUnderTest;

  before(async () => {
    daemon = await DaemonUnderTest.start(['--images-allowed', 'host,dir:team']);
  });
  after(() => daemon.dispose());

  const refusal = async (body: object): Promise<unknown> => {
    const { status, json } = await daemon
      .client()
      .post('/sandboxpools', { name: 'asked', replicas: 0, ...body });
    return [status, json.errorCode, json.error];
  };

  it('allow an image with an allowed prefix, and refuse others by field', async () => {
    expect(await refusal({ template: withImage('dir:other') })).to.deep.equal([
      400,
      'INVALID_ARGUMENT',
      'template.containers[0].image: is not one of the allowed images',
    ]);
    expect(await refusal({ image: 'dir:other' })).to.deep.include(400);
    expect(
      await refusal({ templateName: 'default', overrides: { image: 'dir:other' } }),
    ).to.deep.equal([400, 'INVALID_ARGUMENT', 'overrides.image: is not one of the allowed images']);
    expect(
      (
        await daemon
          .client()
          .post('/sandboxpools', { name: 'own', replicas: 0, template: withImage('host') })
      ).status,
    ).to.equal(201);
  });

  it("allow the host's network to stored templates only, with a warning in readiness and doctor", async () => {
    expect(await refusal({ template: HOST_NETWORK })).to.deep.equal([
      400,
      'INVALID_ARGUMENT',
      'template.network: host is only allowed in templates that an admin created',
    ]);
    const stored = await daemon.client(daemon.adminKey).post('/admin/sandbox-templates', {
      crdJson: JSON.stringify({
        apiVersion: 'sandpool.dev/v1alpha1',
        kind: 'SandboxTemplate',
        metadata: { name: 'open' },
        spec: HOST_NETWORK,
      }),
    });
    expect(stored.status, JSON.stringify(stored.json)).to.equal(201);
    expect(
      (
        await daemon
          .client()
          .post('/sandboxpools', { name: 'open', templateName: 'open', replicas: 0 })
      ).status,
    ).to.equal(201);
    expect(JSON.stringify((await daemon.client().get('/readyz')).json)).to.include(
      'a pool has network: host',
    );
    expect((await daemon.cli(['doctor'])).stdout).to.match(/^warning .*a pool has network: host/m);
  });

  it("can forbid users' own templates, without an effect on existing ones", async () => {
    await daemon.stop();
    await daemon.start(['--limits-inline-templates', 'nobody']);
    expect(await refusal({ template: withImage('host') })).to.deep.equal([
      400,
      'INVALID_ARGUMENT',
      'template: inline templates are disabled here; name a template with templateName',
    ]);
    expect((await daemon.client().get('/sandboxpools/own')).status).to.equal(200);
    expect(
      (
        await daemon
          .client()
          .post('/sandboxpools', { name: 'stored', templateName: 'default', replicas: 0 })
      ).status,
    ).to.equal(201);
  });
});
