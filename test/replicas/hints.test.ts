import { expect } from 'chai';
import { eventually, NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { carryOut } from '../support/harness/hints.ts';
import { HttpClient } from '../support/harness/http-client.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';
import { aPodTemplate } from '../../local-cluster/replicas.ts';
import { onSharedReplicas } from '../support/cluster/on-replicas.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';

/** What a hint advises of a pool whose instances do not start on a cluster is done, and they start. */
describe('advice in hints on a cluster', function () {
  const controlPlane = onTheControlPlane();
  const replicas = onSharedReplicas(controlPlane);
  let client: HttpClient;

  const container = (image: string, memory: string): object => ({
    name: 'main',
    image,
    resources: { limits: { cpu: '100m', memory } },
  });
  before(async () => {
    client = new HttpClient(replicas().replica(0).port, await replicas().tenant('azure', 'bob'));
    for (const [name, image, memory] of [
      ['vast', 'busybox', '2Ti'],
      ['absent', 'unpullable', '64Mi'],
      ['closed', 'private', '64Mi'],
    ] as const)
      await controlPlane().apply(
        aPodTemplate(name, { startupTimeout: '10m', containers: [container(image, memory)] }),
      );
  });
  after(() => client?.close());

  const registries = [{ registry: 'registry.invalid', username: 'bob', password: 'secret' }];
  const cases = [
    {
      fact: 'less cpu and memory, where no node has room',
      template: 'vast',
      type: 'reduce-resources',
      ofPool: { cpu: '100m', memory: '64Mi' },
      ofEnv: { inlineResources: { limits: { cpu: '100m', memory: '64Mi' } } },
    },
    {
      fact: 'another image, where it can not be had',
      template: 'absent',
      type: 'change-image',
      ofPool: { overrides: { image: 'busybox' } },
      ofEnv: { overrides: { image: 'busybox' } },
    },
    {
      fact: "its registry's password, where it can not be had without",
      template: 'closed',
      type: 'change-image',
      ofPool: { overrides: { imagePullSecret: { registries } } },
      ofEnv: { overrides: { imagePullSecret: { registries } } },
    },
  ] as const;

  /** The hint of a claim that is refused, once it says what is wrong. */
  const hintOf = async (poolName: string, type: string): Promise<string> => {
    let hint = '';
    await eventually(async () => {
      const { json } = await client.post('/sandboxes', { poolName });
      const { hint: shown, action } = json.detail ?? {};
      hint = String(shown);
      return (action as { readonly type?: string } | undefined)?.type === type;
    }, `the action is ${type}`);
    return hint;
  };
  const claimed = async (poolName: string): Promise<void> => {
    const { status, text } = await client.post('/sandboxes', {
      poolName,
      waitTimeoutSeconds: NEVER_COMES_MS / 1_000,
    });
    expect(status, text).to.equal(201);
  };

  for (const { fact, template, type, ofPool, ofEnv } of cases) {
    it(`works for a pool: ${fact}`, async () => {
      const name = `${template}-alone`;
      await untilAnswered(201, () =>
        client.post('/sandboxpools', { name, templateName: template, replicas: 1 }),
      );

      const hint = await hintOf(name, type);
      expect(await carryOut(client, hint, { PUT: ofPool })).to.deep.equal([
        `PUT /sandboxpools/${name}`,
      ]);
      await claimed(name);
      await client.delete(`/sandboxpools/${name}?force=true`);
    });

    it(`works for an env: ${fact}`, async () => {
      const [name, member] = [`${template}-env`, `${template}-member`];
      await untilAnswered(201, () =>
        client.post('/envs', { name, templateRef: { name: template } }),
      );
      await untilAnswered(201, () =>
        client.post(`/envs/${name}/sandboxpools`, { name: member, replicas: 1 }),
      );

      const hint = await hintOf(member, type);
      expect(await carryOut(client, hint, { PATCH: ofEnv, PUT: ofEnv })).to.deep.equal([
        'inlineResources' in ofEnv
          ? `PUT /envs/${name}/sandboxpools/${member}`
          : `PATCH /envs/${name}`,
      ]);
      await claimed(member);
      await client.delete(`/envs/${name}?force=true`);
    });
  }
});
