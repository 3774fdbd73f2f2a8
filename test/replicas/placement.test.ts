import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { aPodTemplate } from '../../local-cluster/replicas.ts';
import { eventually } from '../support/harness/eventually.ts';
import { HttpClient } from '../support/harness/http-client.ts';
import { onSharedReplicas } from '../support/cluster/on-replicas.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';

const TAINT = 'sandpool.test/dedicated';
const LABEL = 'sandpool.test/pool';
const toleration = { key: TAINT, operator: 'Equal', value: 'sandboxes', effect: 'NoSchedule' };

interface PodSpec {
  readonly nodeName?: string;
  readonly runtimeClassName?: string;
  readonly priority?: number;
  readonly hostUsers?: boolean;
}

describe("the placement of Pods of an admin's template", function () {
  const controlPlane = onTheControlPlane();
  const replicas = onSharedReplicas(controlPlane);
  let client: HttpClient;
  let namespace: string;
  let node: string;

  before(async () => {
    const { items } = JSON.parse(await controlPlane().kubectl('get', 'nodes', '-o', 'json')) as {
      readonly items: readonly { readonly metadata: { readonly name: string } }[];
    };
    node = items[0]!.metadata.name; // there are five
    client = new HttpClient(replicas().replica(0).port, await replicas().tenant('teal', 'bob'));
    namespace = replicas().namespaceOf('teal');
    await controlPlane().kubectl('label', 'node', node, `${LABEL}=yes`);
    await controlPlane().kubectl('taint', 'node', node, `${TAINT}=sandboxes:NoSchedule`);
    await controlPlane().apply({
      apiVersion: 'node.k8s.io/v1',
      kind: 'RuntimeClass',
      metadata: { name: 'placed' },
      handler: 'placed',
    });
    await controlPlane().apply({
      apiVersion: 'scheduling.k8s.io/v1',
      kind: 'PriorityClass',
      metadata: { name: 'placed' },
      value: 7,
    });
  });

  after(async () => {
    await controlPlane().kubectl('delete', 'sandboxpools', '--all', '-n', namespace);
    client.close();
    await controlPlane().kubectl('label', 'node', node, `${LABEL}-`);
    await controlPlane().kubectl('taint', 'node', node, `${TAINT}:NoSchedule-`);
    await controlPlane().patch(['node', node, '--subresource=status'], {
      status: {
        capacity: { 'sandpool.test/gpu': null },
        allocatable: { 'sandpool.test/gpu': null },
      },
    });
    await controlPlane().kubectl('delete', 'runtimeclass', 'placed');
    await controlPlane().kubectl('delete', 'priorityclass', 'placed');
  });

  const make = async (name: string, fields: object): Promise<void> => {
    await controlPlane().apply(aPodTemplate(name, fields));
    await untilAnswered(201, () =>
      client.post('/sandboxpools', { name, templateName: name, replicas: 2 }),
    );
  };
  const claimed = async (poolName: string): Promise<PodSpec> => {
    const { json } = await untilAnswered(201, () => client.post('/sandboxes', { poolName }));
    const id = String(json.sandbox?.['sandboxId']);
    const text = await controlPlane().kubectl(
      'get',
      'pod',
      `sb-${id}`,
      '-n',
      namespace,
      '-o',
      'json',
    );
    return (JSON.parse(text) as { readonly spec: PodSpec }).spec;
  };
  const conditions = async (pool: string): Promise<string> =>
    JSON.stringify((await client.get(`/sandboxpools/${pool}`)).json.template?.['status']);

  it('follows selector and tolerations, with RuntimeClass and priority', async () => {
    await make('placed', {
      nodeSelector: { [LABEL]: 'yes' },
      tolerations: [toleration],
      runtimeClassName: 'placed',
      priorityClassName: 'placed',
      hostUsers: false,
    });

    expect(await claimed('placed')).to.deep.include({
      nodeName: node,
      runtimeClassName: 'placed',
      priority: 7,
      hostUsers: false,
    });
  });

  it('follows the affinity', async () => {
    const matchExpressions = [{ key: LABEL, operator: 'Exists' }];
    await make('drawn', {
      tolerations: [toleration],
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchExpressions }],
          },
        },
      },
    });

    expect((await claimed('drawn')).nodeName).to.equal(node);
  });

  it('follows the requested devices', async () => {
    const amounts = { 'sandpool.test/gpu': '4' };
    await controlPlane().patch(['node', node, '--subresource=status'], {
      status: { capacity: amounts, allocatable: amounts },
    });
    const containers = [
      { name: 'main', image: 'busybox', extendedResources: { 'sandpool.test/gpu': 1 } },
    ];
    await make('devices', { tolerations: [toleration], containers });

    expect((await claimed('devices')).nodeName).to.equal(node);
  });

  it('avoids nodes with other taints', async () => {
    await make('repelled', { nodeSelector: { [LABEL]: 'yes' }, startupTimeout: '10m' });

    await eventually(
      async () => (await conditions('repelled')).includes('"reason":"Unschedulable"'),
      'it is told',
    );
    expect(await conditions('repelled')).to.contain('untolerated taint');
  });

  for (const [name, fields, words] of [
    ['classless', { runtimeClassName: 'absent-class' }, 'absent-class'],
    ['unranked', { priorityClassName: 'absent-priority' }, 'absent-priority'],
  ] as const) {
    it(`is reported as impossible in the pool's condition: ${words}`, async () => {
      await make(name, fields);

      await eventually(
        async () => (await conditions(name)).includes(words),
        'the condition names it',
      );
    });
  }

  it('uses gVisor with the settings from the page on Kubernetes', async () => {
    const page = readFileSync(new URL('../../docs/nodes.md', import.meta.url), 'utf8');
    const [, section = ''] = page.split('## Every sandbox in gVisor or Kata\n');
    const [runtimeClass, template] = [...section.matchAll(/```yaml\n(.*?)```/gs)].map(
      ([, block = '']) => parse(block) as { readonly metadata: { readonly name: string } },
    );
    await controlPlane().kubectl('label', 'node', node, 'sandpool.dev/runtime=gvisor');
    await controlPlane().kubectl('taint', 'node', node, 'sandpool.dev/sandboxes=only:NoSchedule');
    await controlPlane().kubectl('taint', 'node', node, `${TAINT}:NoSchedule-`);
    try {
      await controlPlane().apply([runtimeClass!, template!]);
      await untilAnswered(201, () =>
        client.post('/sandboxpools', { name: 'copied', templateName: 'isolated', replicas: 1 }),
      );

      expect(await claimed('copied')).to.deep.include({
        nodeName: node,
        runtimeClassName: 'gvisor',
      });
    } finally {
      await controlPlane().kubectl('delete', 'runtimeclass', 'gvisor', '--ignore-not-found');
      await controlPlane().kubectl('label', 'node', node, 'sandpool.dev/runtime-');
      await controlPlane().kubectl('taint', 'node', node, 'sandpool.dev/sandboxes:NoSchedule-');
      await controlPlane().kubectl('taint', 'node', node, `${TAINT}=sandboxes:NoSchedule`);
    }
  });

  it('cannot be set by a tenant', async () => {
    const template = {
      containers: [{ name: 'main', image: 'busybox' }],
      runtimeClassName: 'placed',
    };
    const answer = await client.post('/sandboxpools', { name: 'own', template });

    expect([answer.status, answer.json.detail?.['field']]).to.deep.equal([
      400,
      'template.runtimeClassName',
    ]);
  });
});
