import { expect } from 'chai';
import { eventually } from '../support/harness/eventually.ts';
import { onSharedReplicas } from '../support/cluster/on-replicas.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { NEVER_COMES_MS } from '../../local-cluster/eventually.ts';

const WITHIN = `--timeout=${NEVER_COMES_MS / 1_000}s`;
const TEMPLATE = {
  containers: [
    {
      name: 'main',
      image: 'registry.invalid/sandbox:1',
      resources: { limits: { cpu: '100m', memory: '64Mi' } },
    },
  ],
};

describe('kubectl', function () {
  const controlPlane = onTheControlPlane();
  const replicas = onSharedReplicas(controlPlane);
  let namespace: string;

  before(async () => {
    await replicas().tenant('kube', 'kay');
    namespace = replicas().namespaceOf('kube');
  });

  const kubectl = (...args: readonly string[]): Promise<string> =>
    controlPlane().kubectl(...args, '-n', namespace);
  const apply = async (kind: string, name: string, spec: object): Promise<void> => {
    await controlPlane().apply({
      apiVersion: 'sandpool.dev/v1alpha1',
      kind,
      metadata: { name, namespace, annotations: { 'sandpool.dev/user': 'kay' } },
      spec,
    });
  };

  it('waits for a pool, shows its counts, scales it and names its Pods', async () => {
    await apply('SandboxPool', 'seen', { template: TEMPLATE, replicas: 1 });
    await kubectl('wait', '--for=condition=Ready', 'sbp/seen', WITHIN);
    await kubectl('wait', '--for=jsonpath={.status.phase}=Ready', 'sbp/seen', WITHIN);

    const [heading, row] = (await kubectl('get', 'sbp', 'seen'))
      .split('\n')
      .map((line) => line.split(/ +/));
    expect(heading?.slice(0, 5)).to.deep.equal(['NAME', 'READY', 'IDLE', 'RUNNING', 'REPLICAS']);
    expect(row?.slice(0, 5)).to.deep.equal(['seen', 'True', '1', '0', '1']);

    await kubectl('scale', 'sbp/seen', '--replicas=3');
    await kubectl('wait', '--for=condition=Ready', 'sbp/seen', WITHIN);
    await kubectl('wait', '--for=jsonpath={.status.idleReplicas}=3', 'sbp/seen', WITHIN);
    const scale = JSON.parse(await kubectl('get', 'sbp', 'seen', '--subresource=scale', '-o=json'));
    expect(scale).to.deep.include({ spec: { replicas: 3 } });
    expect(scale.status.replicas).to.equal(3);
    const pods = await kubectl('get', 'pods', '-l', scale.status.selector, '-o', 'name');
    expect(pods.trim().split('\n')).to.have.length(3);
  });

  it('describes a pool that can not start anything, with the cause as an event', async () => {
    await apply('SandboxPool', 'stuck', {
      replicas: 1,
      template: {
        containers: [
          { ...TEMPLATE.containers[0], resources: { limits: { cpu: '256', memory: '4Ti' } } },
        ],
      },
    });
    await kubectl('wait', '--for=condition=Degraded', 'sbp/stuck', WITHIN);
    await kubectl('wait', '--for=condition=Ready=false', 'sbp/stuck', WITHIN);

    let text = '';
    await eventually(
      async () => (text = await kubectl('describe', 'sbp', 'stuck')).includes('Warning'),
      'the event is there',
      () => text,
    );
    expect(text).to.match(/Warning +Unschedulable .*Degraded is True: /);
    expect(await kubectl('get', 'sbp', 'stuck')).to.match(/stuck +False +0 +0 +1 .*Unschedulable/);
    await kubectl('delete', 'sbp', 'stuck');
  });

  it('waits for an env and shows what its members have together', async () => {
    await apply('SandboxTemplate', 'for-kubectl', TEMPLATE);
    await apply('SandboxEnv', 'both', {
      templateRef: { name: 'for-kubectl' },
      members: [
        { name: 'left', replicas: 1 },
        { name: 'right', replicas: 1 },
      ],
    });
    await kubectl('wait', '--for=condition=Ready', 'sbe/both', WITHIN);
    await kubectl('wait', '--for=jsonpath={.status.idleReplicas}=2', 'sbe/both', WITHIN);

    const [, row] = (await kubectl('get', 'sbe', 'both')).split('\n');
    expect(row?.split(/ +/).slice(0, 5)).to.deep.equal(['both', 'True', '2', '0', '2']);
    await kubectl('delete', 'sbe', 'both');
  });

  it('explains each field', async () => {
    expect(await kubectl('explain', 'sbp.spec.template.containers.image')).to.contain(
      'The container image, as [REGISTRY/]NAME[:TAG][@DIGEST].',
    );
  });
});
