import { dirname } from 'node:path';
import { expect } from 'chai';
import { cliHere } from '../cli/cli-support.ts';
import { HttpClient } from '../support/harness/http-client.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';
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

  it('describes a pool that cannot start instances, with the cause as an event', async () => {
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

  it('waits for an env and shows the totals of its members', async () => {
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

  it('drains a node once its claimed sandboxes have ended, and idle ones leave automatically', async () => {
    const key = await replicas().tenant('kube', 'kay');
    const client = new HttpClient(replicas().replica(0).port, key);
    await apply('SandboxPool', 'moving', { template: TEMPLATE, replicas: 3 });
    await kubectl('wait', '--for=jsonpath={.status.phase}=Ready', 'sbp/moving', WITHIN);
    const { json } = await untilAnswered(201, () =>
      client.post('/sandboxes', { poolName: 'moving' }),
    );
    const id = String(json.sandbox?.['sandboxId']);
    const selector = `sandpool.dev/pool-uid=${await kubectl('get', 'sbp', 'moving', '-o', 'jsonpath={.resolved.uid}')}`;
    const nodes = (await controlPlane().kubectl('get', 'nodes', '-o', 'name')).trim().split('\n');
    const node = await kubectl('get', 'pod', `sb-${id}`, '-o', 'jsonpath={.spec.nodeName}');
    const podsThere = async (): Promise<readonly string[]> =>
      (
        await kubectl(
          'get',
          'pods',
          '-l',
          selector,
          `--field-selector=spec.nodeName=${node}`,
          '-o',
          'name',
        )
      )
        .trim()
        .split('\n');
    const drain = (...args: readonly string[]) =>
      cliHere(['nodes', 'drain', node, ...args], {
        PATH: dirname(controlPlane().kubectlProgram),
        KUBECONFIG: controlPlane().kubeconfig('admin'),
      });
    const others = nodes.filter((each) => each !== `node/${node}`);
    try {
      await controlPlane().kubectl('cordon', ...others); // so that what replaces it idles beside it
      await kubectl('wait', '--for=jsonpath={.status.phase}=Ready', 'sbp/moving', WITHIN);
      await controlPlane().kubectl('uncordon', ...others);
      const late = await drain('--wait', '0.1s');
      expect([late.code, late.stderr]).to.deep.equal([3, late.stderr]);
      expect(late.stderr).to.contain(`${namespace}/sb-${id}`);
      const [drained, emptied] = [
        controlPlane().kubectlAs('admin', [
          ...['drain', node, '--force', '--delete-emptydir-data'],
          ...[`--pod-selector=${selector}`, WITHIN],
        ]),
        drain('--wait', '2m'),
      ];
      await eventually(
        async () => (await podsThere()).join() === `pod/sb-${id}`,
        'only the claimed one is left there',
      );
      expect((await client.get(`/sandboxes/${id}`)).json.sandbox).to.include({ status: 'Running' });
      let events = '';
      await eventually(
        async () => {
          events = (await client.get(`/sandboxes/${id}/events`)).text;
          return events.includes('NodeLeaving') && events.includes('its node is cordoned');
        },
        'its owner is told',
        () => events,
      );
      await client.delete(`/sandboxes/${id}`);
      expect((await drained).exitCode).to.equal(0);
      expect((await emptied).code).to.equal(0);
    } finally {
      client.close();
      await controlPlane().kubectl('uncordon', ...nodes);
    }
  });

  it('explains each field', async () => {
    expect(await kubectl('explain', 'sbp.spec.template.containers.image')).to.contain(
      'The container image, as [REGISTRY/]NAME[:TAG][@DIGEST].',
    );
  });
});
