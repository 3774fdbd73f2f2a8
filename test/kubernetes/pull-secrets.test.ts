import { expect } from 'chai';
import { type RedisServer, startRedis } from '../../local-cluster/redis-server.ts';
import { aPodTemplate, Replicas } from '../../local-cluster/replicas.ts';
import { UNCONFIRMED_MS } from '../../src/actors/sandbox/reservation-reconciler.ts';
import { POOL_LABEL } from '../../src/k8s/sandboxes/sandbox-resource.ts';
import { aRedisCoordination, known } from '../support/harness/a-redis-coordination.ts';
import { eventually } from '../support/harness/eventually.ts';
import { HttpClient } from '../support/harness/http-client.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { advanceRedis } from '../support/harness/redis-clock.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';

const TEMPLATE = {
  containers: [
    {
      name: 'main',
      image: 'registry.invalid/sandbox:1',
      resources: { limits: { cpu: '100m', memory: '64Mi' } },
    },
  ],
};
const UNMADE = '019a0000-0000-7000-8000-000000000001';
const UNMADE_ENV = '019a0000-0000-7000-8000-000000000002';

describe('registry passwords of a pool', function () {
  const controlPlane = onTheControlPlane();
  let redis: RedisServer;
  let replicas: Replicas;
  let tenant: HttpClient;
  let namespace: string;

  before(async () => {
    redis = await startRedis();
    replicas = await Replicas.start({ cluster: controlPlane(), redis: redis.settings, count: 1 });
    const key = await replicas.tenant('white', 'wim');
    tenant = new HttpClient(replicas.replica(0).port, key);
    namespace = replicas.namespaceOf('white');
    await controlPlane().apply(aPodTemplate('env-of-secrets'));
    await untilAnswered(201, () =>
      tenant.post('/sandboxpools', { name: 'standing', template: TEMPLATE, replicas: 0 }),
    );
  });
  after(async () => {
    tenant?.close();
    await replicas?.stop();
    await redis?.stop();
  });

  /** As a replica leaves it that dies before it has tied the Secret to the pool's object. */
  const leave = async (poolUid: string): Promise<string> => {
    const name = `sandpool-pull-${poolUid}`;
    await controlPlane().apply([
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name, namespace, labels: { [POOL_LABEL]: poolUid } },
        type: 'kubernetes.io/dockerconfigjson',
        data: { '.dockerconfigjson': Buffer.from('{"auths":{}}').toString('base64') },
      },
    ]);
    return name;
  };
  const secrets = async (): Promise<string> =>
    await controlPlane().kubectl('get', 'secrets', '-n', namespace, '-o', 'name');

  describe('after the death of the replica that stored them', () => {
    const owner = { namespace: '', team: 'white', user: 'wim' };
    const registries = [{ registry: 'r.example', username: 'u', password: 'p' }];
    let died: Awaited<ReturnType<typeof aRedisCoordination>>;
    let made: string;
    let ofPool: string;
    let ofEnv: string;

    /** What is young is left alone: all are left at once, and then half a minute goes by in Redis. */
    before(async () => {
      owner.namespace = namespace;
      await untilAnswered(201, () =>
        tenant.post('/envs', {
          name: 'made',
          templateRef: { name: 'env-of-secrets' },
          overrides: { imagePullSecret: { registries } },
        }),
      );
      const env = JSON.parse(
        await controlPlane().kubectl('get', 'sbe', 'made', '-n', namespace, '-o', 'json'),
      ) as { resolved: { uid: string } };
      made = env.resolved.uid;
      died = await aRedisCoordination(redis.settings, { replica: 'replica-that-died' });
      await known(() => died.coordination.used(owner));
      for (const [name, amount, limit] of [
        [UNMADE, 1, 10],
        [UNMADE_ENV, 0, 0],
        [made, 0, 0],
      ] as const)
        expect(await died.coordination.reserve(owner, 'pools', { name, amount, limit })).to.equal(
          true,
        );
      ofPool = await leave(UNMADE);
      ofEnv = await leave(UNMADE_ENV);
      await advanceRedis([redis.client], UNCONFIRMED_MS);
    });
    after(async () => {
      await died?.stop();
    });

    it('are deleted if the pool was not created', async () => {
      await eventually(async () => !(await secrets()).includes(ofPool), 'the Secret is gone');
    });

    it('are deleted if the env was not created, and stay otherwise', async () => {
      await eventually(async () => !(await secrets()).includes(ofEnv), 'the Secret is gone');
      await eventually(
        async () => (await died.coordination.unreconciled(owner, 'pools', 0)).length === 0,
        'both are settled',
      );
      expect(await secrets()).to.include(`sandpool-pull-${made}`);
    });
  });

  it('are deleted with a pool even if they were never tied to its object', async () => {
    await untilAnswered(201, () =>
      tenant.post('/sandboxpools', {
        name: 'untied',
        template: TEMPLATE,
        replicas: 0,
        overrides: {
          imagePullSecret: {
            registries: [{ registry: 'r.example', username: 'u', password: 'p' }],
          },
        },
      }),
    );
    const uid = JSON.parse(
      await controlPlane().kubectl('get', 'sbp', 'untied', '-n', namespace, '-o', 'json'),
    ).resolved.uid as string;
    const owned = async (): Promise<boolean> =>
      (await controlPlane().kubectl(
        'get',
        'secret',
        `sandpool-pull-${uid}`,
        '-n',
        namespace,
        '-o',
        'jsonpath={.metadata.ownerReferences}',
      )) !== '';
    await eventually(owned, 'it was tied');
    const name = `sandpool-pull-${uid}`;
    await controlPlane().kubectl(
      'patch',
      'secret',
      name,
      '-n',
      namespace,
      '--type=json',
      '-p',
      '[{"op":"remove","path":"/metadata/ownerReferences"}]',
    );

    await tenant.delete('/sandboxpools/untied?force=true');
    await eventually(async () => !(await secrets()).includes(name), 'the Secret is gone');
  });
});
