import { expect } from 'chai';
import { buildImage, type ContainerImage } from '../support/cluster/container-image.ts';
import { installCustomResources } from '../../local-cluster/custom-resources.ts';
import { DeployedRelease } from '../support/cluster/deployed-release.ts';
import type { DeployedReplica } from '../support/cluster/deployed-replica.ts';
import { eventually } from '../support/harness/eventually.ts';
import { HttpClient } from '../support/harness/http-client.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';
import { deployedFleet } from './deployed-fleet.ts';

const RELEASE = 'test-deployed-sandpool';

describe('a deployment by the chart', () => {
  const controlPlane = onTheControlPlane();
  /** One for all: its build takes long. */
  let image: ContainerImage;
  before('the image', async () => {
    image = await buildImage();
  });
  after('the image', () => image?.remove());

  describe('replicas deployed by the chart from the image', function () {
    let namespace: string;
    let release: DeployedRelease;
    let replicas: readonly DeployedReplica[] = [];
    let adminKey: string;

    before(async () => {
      await installCustomResources(controlPlane());
      namespace = await controlPlane().namespace();
      release = await DeployedRelease.install({
        ...{ name: RELEASE, cluster: controlPlane(), namespace, image },
      });
      ({ replicas } = release);
      adminKey = await release.secretOf(RELEASE, 'admin.key');
    });
    after(async () => {
      await release?.remove();
    });

    it('are three, without root, and can write only to memory', () => {
      expect(replicas).to.have.length(3);
      for (const { container, pod } of replicas) {
        expect(container.securityContext.readOnlyRootFilesystem).to.equal(true);
        expect(pod.spec.securityContext.runAsUser).to.equal(image.uid);
      }
    });

    it('pass the probes of their Pods, without warnings', async () => {
      for (const replica of replicas) {
        const client = new HttpClient(replica.port);
        const { path } = replica.container.readinessProbe.httpGet;
        // channels of Redis may be heard a moment later
        let { status, json } = await untilAnswered(200, () => client.get(path));
        await eventually(
          async () => ({ status, json } = await client.get(path)).text.includes('"warnings":[]'),
          'it warns of nothing',
        );
        expect(json).to.deep.equal({
          status: 'ready',
          problems: [],
          warnings: [],
          isolation: 'pod',
        });
        expect([
          status,
          (await client.get(replica.container.livenessProbe.httpGet.path)).status,
        ]).to.deep.equal([200, 200]);
      }
    });

    it("hand out sandboxes of the chart's templates, by the admin key that it made", async () => {
      const [one, two, three] = replicas.map(({ port }) => new HttpClient(port, adminKey));
      if (!one || !two || !three) throw new Error('there are three');
      for (const name of ['default', 'web']) {
        await eventually(
          async () =>
            (await one.post('/sandboxpools', { name, templateName: name, replicas: 1 })).status ===
            201,
          `the pool ${name} is made`,
        );
      }
      let sandboxId = '';
      await eventually(async () => {
        const { status, json } = await two.post('/sandboxes', { poolName: 'default' });
        sandboxId = json.sandbox?.['sandboxId'] ?? '';
        return status === 201;
      }, 'a sandbox is handed out');

      expect(
        (await three.post(`/sandboxes/${sandboxId}/exec`, { command: 'echo hello' })).json.stdout,
      ).to.equal('hello\n');
      expect((await one.delete(`/sandboxes/${sandboxId}`)).status).to.equal(200);
      for (const name of ['default', 'web'])
        expect((await one.delete(`/sandboxpools/${name}?force=true`)).status).to.equal(200);
    });

    it('log the names of their Pods, and no secrets', async () => {
      const secrets = [
        adminKey,
        await release.secretOf(RELEASE, 'pepper'),
        await release.secretOf(`${RELEASE}-redis`, 'password'),
      ];
      for (const { output, pod } of replicas) {
        expect(output).to.include(`"replica":"${pod.metadata.name}-`);
        for (const secret of secrets) expect(output).not.to.include(secret);
      }
    });

    it('stop in order at SIGTERM within their grace period, after announcing it for a while', async () => {
      const [first] = replicas;
      if (!first) throw new Error('there are three');
      const client = new HttpClient(first.port, adminKey);

      first.signal('SIGTERM');

      await eventually(
        async () => (await client.get('/readyz')).status === 503,
        'it says that it goes',
      );
      expect((await client.get('/sandboxpools')).status).to.equal(200);
      expect(await first.ended()).to.equal(0);
      for (const replica of replicas.slice(1)) replica.signal('SIGTERM');
      expect(await Promise.all(replicas.map((replica) => replica.ended()))).to.deep.equal([
        0, 0, 0,
      ]);
    });
  });

  deployedFleet(() => image);
});
