import { expect } from 'chai';
import { aPodTemplate } from '../../local-cluster/replicas.ts';
import { keysAndQuotasSuite } from '../contracts/keys-and-quotas.ts';
import { eventually } from '../support/harness/eventually.ts';
import { HttpClient } from '../support/harness/http-client.ts';
import { onSharedReplicas } from '../support/cluster/on-replicas.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';
import { sampled } from '../support/harness/sampled.ts';

describe('keys and quotas on three replicas', function () {
  const controlPlane = onTheControlPlane();
  const replicas = onSharedReplicas(controlPlane);
  before(() => controlPlane().apply(aPodTemplate('keys-pod')));

  sampled(() => {
    keysAndQuotasSuite('three replicas', () => ({
      ports: replicas().list.map(({ port }) => port),
      adminKey: replicas().adminKey,
      templateName: 'keys-pod',
      namespaceOf: async (team, user = 'first') => {
        await replicas().tenant(team, user);
        return replicas().namespaceOf(team);
      },
    }));
  });

  describe('with kubectl', () => {
    const opened: HttpClient[] = [];
    const at = (replica: number, key: string): HttpClient => {
      const client = new HttpClient(replicas().replica(replica).port, key);
      opened.push(client);
      return client;
    };
    afterEach(() => {
      for (const client of opened.splice(0)) client.close();
    });

    it('a key deleted by kubectl is invalid on all replicas', async () => {
      const key = await replicas().tenant('hands', 'hank');
      const { json } = await at(0, key).get('/api-keys');
      const [namespace = '', name = ''] = String(json.items?.[0]?.['name']).split('/');

      await controlPlane().kubectl('delete', 'apikey', name, '-n', namespace);

      for (const replica of [0, 1, 2])
        await eventually(
          async () => (await at(replica, key).get('/sandboxes')).status === 401,
          'it is refused',
        );
    });

    it('the first request of a new user succeeds while the unused quota is still being read', async () => {
      const [pool, env, member] = [
        await replicas().tenant('fresh', 'fred', { isUncounted: true }),
        await replicas().tenant('fresh', 'frida', { isUncounted: true }),
        await replicas().tenant('fresh', 'fritz', { isUncounted: true }),
      ];
      const templateRef = { name: 'keys-pod' };
      const imagePullSecret = {
        registries: [{ registry: 'r.example', username: 'u', password: 'p' }],
      };
      const [made, withPasswords] = await Promise.all([
        at(1, pool).post('/sandboxpools', { name: 'freds', templateName: 'keys-pod', replicas: 0 }),
        at(2, env).post('/envs', { name: 'fridas', templateRef, overrides: { imagePullSecret } }),
      ]);
      const first = await at(1, member).post('/envs', { name: 'fritzs', templateRef });
      const added = await at(1, member).post('/envs/fritzs/sandboxpools', {
        name: 'of-fritz',
        replicas: 0,
      });

      for (const answer of [made, withPasswords, first, added])
        expect(answer.status, answer.text).to.equal(201);
    });

    it('a UserQuota of kubectl takes effect in each version, and one created by REST appears there', async () => {
      const key = await replicas().tenant('hands', 'hilda');
      const namespace = replicas().namespaceOf('hands');
      const limits = async (replica: number) =>
        (await untilAnswered(200, () => at(replica, key).get('/quotas'))).json.items?.map(
          ({ limit }) => limit,
        );
      const configured = await limits(0);
      const quota = (spec: object): object => ({
        apiVersion: 'sandpool.dev/v1alpha1',
        kind: 'UserQuota',
        metadata: { name: 'hands.hilda', namespace },
        spec: { team: 'hands', user: 'hilda', ...spec },
      });

      await controlPlane().apply(quota({ sandboxes: 0, replicas: 5 }));
      for (const replica of [0, 1, 2]) expect(await limits(replica)).to.deep.equal([0, 50, 5]);
      await untilAnswered(201, () =>
        at(0, key).post('/sandboxpools', { name: 'hildas', templateName: 'keys-pod', replicas: 1 }),
      );
      const refused = await untilAnswered(429, () =>
        at(1, key).post('/sandboxes', { poolName: 'hildas' }),
      );
      await eventually(
        async () =>
          (await at(1, key).post('/sandboxes', { poolName: 'hildas' })).json.errorCode ===
          'QUOTA_EXCEEDED',
        `not even one: ${refused.text}`,
      );

      expect(
        (await at(2, replicas().adminKey).put('/admin/quotas/hands/hilda', { pools: 9 })).status,
      ).to.equal(200);
      const jsonpath = 'jsonpath={.spec.sandboxes} {.spec.pools} {.spec.replicas}';
      expect(
        await controlPlane().kubectl('get', 'sbq', 'hands.hilda', '-n', namespace, '-o', jsonpath),
      ).to.equal('0 9 5');

      await controlPlane().apply(quota({ cpu: '1500m', memory: '2Gi' }));
      for (const replica of [0, 1, 2])
        expect((await limits(replica))?.slice(3)).to.deep.equal([1.5, 2 ** 31]);
      expect(
        (await at(1, replicas().adminKey).put('/admin/quotas/hands/hilda', { cpu: 2 })).status,
      ).to.equal(200);
      expect(
        await controlPlane().kubectl(
          'get',
          'sbq',
          'hands.hilda',
          '-n',
          namespace,
          '-o',
          'jsonpath={.spec.cpu} {.spec.memory}',
        ),
      ).to.equal('2 2097152Ki');

      await controlPlane().kubectl('delete', 'userquota', 'hands.hilda', '-n', namespace);
      for (const replica of [0, 1, 2]) expect(await limits(replica)).to.deep.equal(configured);
      await untilAnswered(201, () => at(0, key).post('/sandboxes', { poolName: 'hildas' }));
    });

    it('a UserQuota with an inconsistent name or values out of bounds is refused', async () => {
      const namespace = replicas().namespaceOf('default');
      const said = async (name: string, spec: object): Promise<string> => {
        const object = {
          apiVersion: 'sandpool.dev/v1alpha1',
          kind: 'UserQuota',
          metadata: { name, namespace },
          spec,
        };
        return (
          await controlPlane().kubectlAs(
            'admin',
            ['create', '--dry-run=server', '-f', '-'],
            JSON.stringify(object),
          )
        ).stderr.trim();
      };
      expect(await said('blue.ada', { team: 'blue', user: 'ada', sandboxes: 3 })).to.equal('');
      expect(await said('ada', { team: 'blue', user: 'ada' })).to.include(
        'the name must be {team}.{user}',
      );
      expect(await said('blue.ada', { team: 'blue', user: 'ada', sandboxes: -1 })).to.include(
        'greater than or equal to 0',
      );
      expect(
        await said('blue.ada', { team: 'blue', user: 'ada', cpu: '16', memory: '64Gi' }),
      ).to.equal('');
      expect(await said('blue.ada', { team: 'blue', user: 'ada', memory: 'much' })).to.include(
        'spec.memory',
      );
      expect(await said('blue.ada', { team: 'blue' })).to.include('spec.user');
    });
  });
});
