import { expect } from 'chai';
import { CHART, helm } from '../../local-cluster/chart.ts';
import { buildImage, type ContainerImage } from '../support/cluster/container-image.ts';
import { installCustomResources } from '../../local-cluster/custom-resources.ts';
import { DeployedReplica, type PodObject } from '../support/cluster/deployed-replica.ts';
import { eventually } from '../support/harness/eventually.ts';
import { HttpClient } from '../support/harness/http-client.ts';
import { startRedis, type RedisServer } from '../../local-cluster/redis-server.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';

const RELEASE = 'test-deployed-sandpool';

describe('replicas as the chart deploys them, from the image', function () {
  this.timeout(180_000);
  const controlPlane = onTheControlPlane();
  let namespace: string;
  let image: ContainerImage;
  let redis: RedisServer;
  let replicas: readonly DeployedReplica[] = [];
  let adminKey: string;

  const secretOf = async (name: string, key: string): Promise<string> =>
    Buffer.from(
      await controlPlane().kubectl(
        'get',
        'secret',
        name,
        '-n',
        namespace,
        '-o',
        `go-template={{index .data "${key}"}}`,
      ),
      'base64',
    ).toString();
  const place = (): readonly string[] => [
    '--namespace',
    namespace,
    `--kubeconfig=${controlPlane().kubeconfig('admin')}`,
  ];

  before(async () => {
    await installCustomResources(controlPlane());
    namespace = await controlPlane().namespace();
    image = await buildImage();
    // kwok plays the Pods, as if they ran; the bundled Redis would wait for a volume.
    helm(
      ['install', RELEASE, CHART, '--skip-crds', '--values', '-', ...place()],
      JSON.stringify({
        image: { repository: 'sandpool' },
        namespacePattern: `${namespace}-{team}`,
      }),
    );
    await controlPlane().kubectl(
      'rollout',
      'status',
      `deployment/${RELEASE}`,
      '-n',
      namespace,
      '--timeout=60s',
    );
    await controlPlane().kubectl(
      'wait',
      '--for=create',
      'serviceaccount/default',
      '-n',
      `${namespace}-default`,
      '--timeout=30s',
    );
    redis = await startRedis({ config: await redisConfig() });
    adminKey = await secretOf(RELEASE, 'admin.key');
    const { items: pods } = JSON.parse(
      await controlPlane().kubectl(
        'get',
        'pods',
        '-n',
        namespace,
        '-l',
        'app.kubernetes.io/name=sandpool',
        '-o',
        'json',
      ),
    ) as { items: readonly PodObject[] };
    const env = {
      SANDPOOL_LISTEN: '127.0.0.1:0',
      SANDPOOL_METRICS_LISTEN: '127.0.0.1:0',
      SANDPOOL_COMPATIBLE_API_LISTEN: '127.0.0.1:0',
      SANDPOOL_REDIS_URLS: redis.settings.urls.join(),
    };
    replicas = await Promise.all(
      pods.map((pod) => DeployedReplica.start(pod, { cluster: controlPlane(), image, env })),
    );
  });
  after(async () => {
    await Promise.all(replicas.map((replica) => replica.remove()));
    await redis?.stop();
    image?.remove();
    helm(['uninstall', RELEASE, ...place()]);
    await controlPlane().kubectl('delete', 'namespace', `${namespace}-default`, '--wait=false');
  });

  /** As the chart's Redis has it, but for its folder. */
  const redisConfig = async (): Promise<readonly string[]> => {
    const text = await controlPlane().kubectl(
      'get',
      'configmap',
      `${RELEASE}-redis`,
      '-n',
      namespace,
      '-o',
      'go-template={{index .data "redis.conf"}}',
    );
    const password = await secretOf(`${RELEASE}-redis`, 'password.conf');
    return text
      .split('\n')
      .filter((line) => !line.startsWith('dir '))
      .map((line) => (line.startsWith('include ') ? password.trim() : line));
  };

  it('are three, none of them root, with nothing that they can write to but their own memory', () => {
    expect(replicas).to.have.length(3);
    for (const { container, pod } of replicas) {
      expect(container.securityContext.readOnlyRootFilesystem).to.equal(true);
      expect(pod.spec.securityContext.runAsUser).to.equal(image.uid);
    }
  });

  it('pass the probes of their Pods, with nothing to complain of', async () => {
    for (const replica of replicas) {
      const client = new HttpClient(replica.port);
      const { status, json } = await client.get(replica.container.readinessProbe.httpGet.path);
      expect(json).to.deep.equal({ status: 'ready', problems: [], warnings: [], isolation: 'pod' });
      expect([
        status,
        (await client.get(replica.container.livenessProbe.httpGet.path)).status,
      ]).to.deep.equal([200, 200]);
    }
  });

  it('hand out sandboxes of the templates that came with the chart, by the admin key that it made', async () => {
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
    await eventually(
      async () => {
        const { status, json } = await two.post('/sandboxes', { poolName: 'default' });
        sandboxId = json.sandbox?.['sandboxId'] ?? '';
        return status === 201;
      },
      'a sandbox is handed out',
      30_000,
    );

    expect(
      (await three.post(`/sandboxes/${sandboxId}/exec`, { command: 'echo hello' })).json.stdout,
    ).to.equal('hello\n');
    expect((await one.delete(`/sandboxes/${sandboxId}`)).status).to.equal(200);
    for (const name of ['default', 'web'])
      expect((await one.delete(`/sandboxpools/${name}?force=true`)).status).to.equal(200);
  });

  it("tell their Pod's name in what they log, and no secret", async () => {
    const secrets = [
      adminKey,
      await secretOf(RELEASE, 'pepper'),
      await secretOf(`${RELEASE}-redis`, 'password'),
    ];
    for (const { output, pod } of replicas) {
      expect(output).to.include(`"replica":"${pod.metadata.name}-`);
      for (const secret of secrets) expect(output).not.to.include(secret);
    }
  });

  it('stop in order at SIGTERM, well within the grace of their Pods, after a time in which they only say that they go', async () => {
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
    expect(await Promise.all(replicas.map((replica) => replica.ended()))).to.deep.equal([0, 0, 0]);
  });
});
