import { expect } from 'chai';
import { eventually } from '../support/harness/eventually.ts';
import { HttpClient } from '../support/harness/http-client.ts';
import { onReplicas } from '../support/cluster/on-replicas.ts';
import { onTheCluster } from '../support/cluster/shared-cluster.ts';

const ALLOWED = 'registry.example/team';

describe('a kubectl pool with fields that its owner must not use', function () {
  const cluster = onTheCluster();
  const replicas = onReplicas(cluster, { count: 1, env: { SANDPOOL_IMAGES_ALLOWED: ALLOWED } });
  let tenant: HttpClient;
  let namespace: string;

  before(async () => {
    tenant = new HttpClient(replicas().replica(0).port, await replicas().tenant('black', 'bea'));
    namespace = replicas().namespaceOf('black');
  });
  after(() => {
    tenant?.close();
  });

  const applied = (name: string, template: object): Promise<unknown> =>
    cluster().apply({
      apiVersion: 'sandpool.dev/v1alpha1',
      kind: 'SandboxPool',
      metadata: { name, namespace },
      spec: { template, replicas: 1 },
    });
  const read = (...what: readonly string[]): Promise<string> =>
    cluster().kubectl('get', ...what, '-n', namespace, '-o', 'json');

  for (const [name, template, why] of [
    [
      'other-image',
      { containers: [{ name: 'main', image: 'registry.example/teams/tool:1' }] },
      'template.containers[0].image: is not one of the allowed images',
    ],
    [
      'host-network',
      { network: 'host', containers: [{ name: 'main', image: `${ALLOWED}/tool:1` }] },
      'template.network: host is only allowed in templates that an admin created',
    ],
  ] as const) {
    it(`reports it in a condition, and has no Pod: ${name}`, async () => {
      await applied(name, template);
      let pool = '';
      await eventually(
        async () => (pool = await read('sandboxpool', name)).includes(why),
        'the pool says why',
      ).catch((error: unknown) => {
        throw new Error(`it says ${pool}`, { cause: error });
      });
      expect(JSON.parse(await read('pods')).items).to.deep.equal([]);
    });
  }

  it('is refused over REST with the same field', async () => {
    const { status, json } = await tenant.post('/sandboxpools', {
      name: 'rest',
      replicas: 1,
      template: { containers: [{ name: 'main', image: 'registry.example/teams/tool:1' }] },
    });
    expect([status, json.error]).to.deep.equal([
      400,
      'template.containers[0].image: is not one of the allowed images',
    ]);
  });
});
