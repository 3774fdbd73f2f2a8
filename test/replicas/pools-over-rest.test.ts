import { expect } from 'chai';
import { agentFor, readAgents } from '../../src/k8s/sandboxes/pods/agent-programs.ts';
import { agentVolume } from '../../src/k8s/sandboxes/pods/pod-agent.ts';
import { POOL_LABEL } from '../../src/k8s/sandboxes/sandbox-resource.ts';
import { poolsSuite } from '../contracts/pools-over-rest.ts';
import { aDefinition } from '../support/builders/instance-orders.ts';
import { eventually } from '../support/harness/eventually.ts';
import type { HttpClient } from '../support/harness/http-client.ts';
import { PatientClient } from '../support/harness/patient-client.ts';
import { onSharedReplicas } from '../support/cluster/on-replicas.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';
import { sampled } from '../support/harness/sampled.ts';

const IMAGE = 'registry.invalid/sandbox:1';
const TEMPLATE = {
  containers: [
    { name: 'main', image: IMAGE, resources: { limits: { cpu: '100m', memory: '64Mi' } } },
  ],
};

describe('Pods of pools on three replicas', function () {
  const controlPlane = onTheControlPlane();
  const replicas = onSharedReplicas(controlPlane);
  let tenants: readonly HttpClient[];
  let namespace: string;

  before(async () => {
    const key = await replicas().tenant('green', 'gus');
    tenants = replicas().list.map(({ port }) => new PatientClient(port, key));
    namespace = replicas().namespaceOf('green');
    const name = `${namespace}-data`;
    const [accessModes, storageClassName] = [['ReadWriteMany'], 'by-hand'];
    await controlPlane().apply([
      {
        apiVersion: 'v1',
        kind: 'PersistentVolume',
        metadata: { name },
        spec: {
          storageClassName,
          accessModes,
          capacity: { storage: '1Gi' },
          claimRef: { namespace, name: 'data' },
          hostPath: { path: '/nowhere' },
        },
      },
      {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name: 'data', namespace },
        spec: {
          storageClassName,
          accessModes,
          volumeName: name,
          resources: { requests: { storage: '1Gi' } },
        },
      },
    ]);
    await controlPlane().kubectl(
      'wait',
      '--for=jsonpath={.status.phase}=Bound',
      'pvc/data',
      '-n',
      namespace,
      '--timeout=60s',
    );
    await untilAnswered(200, () => tenants[0]!.get('/volumes'));
  });
  after(async () => {
    for (const client of tenants) client.close();
    await controlPlane().kubectl('delete', 'pv', `${namespace}-data`, '--wait=false');
  });

  sampled(() => {
    poolsSuite('three replicas', () => ({ tenants, image: IMAGE, claimName: 'data' }));
  });

  const read = async (...what: readonly string[]): Promise<unknown> =>
    JSON.parse(await controlPlane().kubectl('get', ...what, '-n', namespace, '-o', 'json'));
  interface PodSpec {
    readonly containers: readonly {
      readonly resources: unknown;
      readonly volumeMounts?: readonly object[];
    }[];
    readonly volumes?: readonly { readonly persistentVolumeClaim?: unknown }[];
    readonly imagePullSecrets?: readonly unknown[];
  }
  const uidOf = async (pool: string): Promise<string> =>
    ((await read('sbp', pool)) as { resolved: { uid: string } }).resolved.uid;
  const podOf = async (pool: string): Promise<PodSpec> => {
    const label = `${POOL_LABEL}=${await uidOf(pool)}`;
    let found: PodSpec | undefined;
    await eventually(
      async () =>
        (found = ((await read('pods', '-l', label)) as { items: readonly { spec: PodSpec }[] })
          .items[0]?.spec) !== undefined,
      `a Pod of ${pool}`,
    );
    return found!;
  };

  it("have the pool's size, volumes, and a Secret with its passwords", async () => {
    const registries = [{ registry: 'registry.example', username: 'ann', password: 'hunter2' }];
    await untilAnswered(201, () =>
      tenants[0]!.post('/sandboxpools', {
        name: 'whole',
        template: TEMPLATE,
        instanceType: 'small',
        multiplier: 2,
        overrides: {
          imagePullSecret: { registries },
          volumes: [
            { claimName: 'data', mountPath: '/data', subPath: 'mine', readOnly: true },
            { claimName: 'data', mountPath: '/all' },
          ],
        },
      }),
    );

    const spec = await podOf('whole');
    const memory = String(512 * 2 ** 20);
    expect(spec.containers[0]?.resources).to.deep.equal({
      // its disk is what the namespace's LimitRange says
      requests: { cpu: '500m', memory, 'ephemeral-storage': '0' },
      limits: { cpu: '1', memory, 'ephemeral-storage': '10Gi' },
    });
    expect(spec.containers[0]?.volumeMounts).to.deep.equal([
      { name: 'claim-0', mountPath: '/data', subPath: 'mine', readOnly: true },
      { name: 'claim-0', mountPath: '/all' },
      { name: 'sandpool-agent', mountPath: '/.sandpool', readOnly: true },
    ]);
    expect(spec.volumes).to.deep.equal([
      { name: 'claim-0', persistentVolumeClaim: { claimName: 'data' } },
      agentVolume(agentFor(aDefinition(), readAgents()).program),
    ]);
    const name = `sandpool-pull-${await uidOf('whole')}`;
    expect(spec.imagePullSecrets).to.deep.equal([{ name }]);
    await eventually(
      async () =>
        ((await read('secret', name)) as { metadata: { ownerReferences?: readonly object[] } })
          .metadata.ownerReferences !== undefined,
      'the Secret is the pool’s',
    );
    const secret = (await read('secret', name)) as {
      type: string;
      data: Record<string, string>;
      metadata: { ownerReferences: readonly object[] };
    };
    expect(secret.type).to.equal('kubernetes.io/dockerconfigjson');
    expect(
      JSON.parse(Buffer.from(secret.data['.dockerconfigjson'] ?? '', 'base64').toString()),
    ).to.deep.equal({
      auths: {
        'registry.example': {
          username: 'ann',
          password: 'hunter2',
          auth: Buffer.from('ann:hunter2').toString('base64'),
        },
      },
    });
    expect(secret.metadata.ownerReferences).to.deep.include.members([
      {
        apiVersion: 'sandpool.dev/v1alpha1',
        kind: 'SandboxPool',
        name: 'whole',
        controller: false,
        blockOwnerDeletion: false,
        uid: ((await read('sbp', 'whole')) as { metadata: { uid: string } }).metadata.uid,
      },
    ]);
    expect(JSON.stringify(await read('sbp', 'whole'))).to.not.contain('hunter2');

    expect(
      (
        await tenants[1]!.put('/sandboxpools/whole', {
          overrides: { imagePullSecret: { registries: [] } },
        })
      ).status,
    ).to.equal(200);
    await eventually(
      async () =>
        (await controlPlane().kubectl('get', 'secrets', '-n', namespace, '-o', 'name')).includes(
          name,
        ) === false,
      'the Secret is gone',
    );
    await tenants[2]!.delete('/sandboxpools/whole?force=true');
  });

  it('follow pools created and edited by kubectl', async () => {
    const overrides = { overrides: { image: 'registry.invalid/other:2' } };
    await controlPlane().apply({
      apiVersion: 'sandpool.dev/v1alpha1',
      kind: 'SandboxPool',
      metadata: { name: 'by-hand', namespace, annotations: { 'sandpool.dev/user': 'gus' } },
      spec: { template: TEMPLATE, replicas: 0 },
    });
    const shown = async (replica: number): Promise<Readonly<Record<string, unknown>>> =>
      (await tenants[replica]!.get('/sandboxpools/by-hand')).json.template ?? {};
    await eventually(async () => (await shown(0))['memory'] === '64Mi', 'it is taken in');

    await controlPlane().patch(['sbp', 'by-hand', '-n', namespace], {
      spec: { memory: '96Mi', ...overrides },
    });
    await eventually(
      async () =>
        (await Promise.all([0, 1, 2].map(shown))).every(({ memory }) => memory === '96Mi'),
      'its leader renders it anew, for all',
    );
    expect((await shown(1))['spec']).to.deep.include(overrides);

    await controlPlane().patch(['sbp', 'by-hand', '-n', namespace], {
      spec: { instanceType: 'gigantic' },
    });
    await eventually(
      async () => JSON.stringify((await shown(0))['spec']).includes('gigantic'),
      'the edit is seen',
    );
    expect((await shown(0))['memory']).to.equal('96Mi');
    await tenants[0]!.delete('/sandboxpools/by-hand?force=true');
  });
});
