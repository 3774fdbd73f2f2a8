import { expect } from 'chai';
import { podNameOf } from '../../src/model/identifiers.ts';
import { eventually } from '../support/harness/eventually.ts';
import { HttpClient } from '../support/harness/http-client.ts';
import { aPodTemplate } from '../../local-cluster/replicas.ts';
import { onSharedReplicas } from '../support/cluster/on-replicas.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';

describe('replicas on a cluster with failing Pods', function () {
  const controlPlane = onTheControlPlane();
  const replicas = onSharedReplicas(controlPlane);
  let client: HttpClient;
  let namespace: string;

  before(async () => {
    client = new HttpClient(replicas().replica(0).port, await replicas().tenant('navy', 'bob'));
    namespace = replicas().namespaceOf('navy');
    await controlPlane().apply(aPodTemplate('idle-pod'));
    await controlPlane().apply(
      aPodTemplate('unpulled-pod', {
        startupTimeout: '10m',
        containers: [{ name: 'main', image: 'unpullable' }],
      }),
    );
    await controlPlane().apply(
      aPodTemplate('vast-pod', {
        startupTimeout: '10m',
        containers: [
          { name: 'main', image: 'busybox', resources: { limits: { cpu: '100m', memory: '2Ti' } } },
        ],
      }),
    );
    await controlPlane().apply(
      aPodTemplate('huge-pod', {
        startupTimeout: '1s',
        containers: [{ name: 'main', image: 'unpullable' }],
      }),
    );
  });

  after(async () => {
    await controlPlane().kubectl('delete', 'sandboxpools', '--all', '-n', namespace);
    client.close();
  });

  const claim = async (poolName: string): Promise<string> =>
    String(
      (await untilAnswered(201, () => client.post('/sandboxes', { poolName }))).json.sandbox?.[
        'sandboxId'
      ],
    );
  const finished = (id: string, endReason: string): Promise<void> =>
    eventually(async () => {
      const items = (await client.get('/sandboxes?phase=Completed')).json.items ?? [];
      return items.some((item) => item['sandboxId'] === id && item['endReason'] === endReason);
    }, `it ended: ${endReason}`);
  const breakerOf = (pool: string): Promise<string> =>
    controlPlane().kubectl('get', 'sandboxpool', pool, '-n', namespace, '-o', 'json');

  it('report why a pool cannot be filled, for a quota and an image', async () => {
    await untilAnswered(201, () =>
      client.post('/sandboxpools', { name: 'pulls', templateName: 'huge-pod', replicas: 1 }),
    );
    await eventually(
      async () => (await breakerOf('pulls')).includes('ImagePullBackOff: Back-off pulling image'),
      'the breaker knows of the image',
    );
    await client.delete('/sandboxpools/pulls');

    await controlPlane().apply({
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'few', namespace },
      spec: { hard: { pods: '0' } },
    });
    await untilAnswered(201, () =>
      client.post('/sandboxpools', { name: 'limited', templateName: 'idle-pod', replicas: 2 }),
    );
    await eventually(
      async () => (await breakerOf('limited')).includes('exceeded quota: few'),
      'the breaker knows of the quota',
    );
    await eventually(
      async () => (await client.get('/sandboxpools/limited')).text.includes('"phase":"Failed"'),
      'its owner is told',
    );
    await controlPlane().kubectl('delete', 'resourcequota', 'few', '-n', namespace);
    await claim('limited');
  });

  const exhausted = async (pool: string): Promise<Readonly<Record<string, unknown>>> =>
    (await untilAnswered(429, () => client.post('/sandboxes', { poolName: pool }))).json.detail ??
    {};
  interface Shown {
    readonly phase: string;
    readonly conditions: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason: string;
      readonly message: string;
    }[];
  }
  const shown = async (pool: string): Promise<Shown> =>
    (await client.get(`/sandboxpools/${pool}`)).json.template?.['status'] as Shown;

  for (const { kind, template, reason, words, hint } of [
    {
      kind: 'no node has room for',
      template: 'vast-pod',
      reason: 'Unschedulable',
      words: 'Insufficient memory',
      hint: 'less cpu',
    },
    {
      kind: 'an image can not be pulled for',
      template: 'unpulled-pod',
      reason: 'ImageUnavailable',
      words: 'Back-off pulling image',
      hint: 'overrides.image',
    },
  ] as const) {
    it(`report at once the cause and the remedy for a pool that ${kind}`, async () => {
      await untilAnswered(201, () =>
        client.post('/sandboxpools', { name: template, templateName: template, replicas: 2 }),
      );
      let phase = '';
      let condition: Shown['conditions'][number] | undefined;
      await eventually(async () => {
        const status = await shown(template);
        phase = status.phase;
        condition = status.conditions.find(({ type }) => type === 'Degraded');
        return condition?.reason === reason && condition.message.includes(words);
      }, `it is Degraded: ${reason}`);

      expect([phase, condition?.status]).to.deep.equal(['Degraded', 'True']);
      expect(condition?.message).to.contain(words).and.to.not.contain('preemption');
      const detail = await exhausted(template);
      expect(detail['problem']).to.contain(words);
      expect(detail['hint']).to.contain(hint);
      await client.delete(`/sandboxpools/${template}?force=true`);
    });
  }

  it('keep in the history how a claimed sandbox ended: evicted, deleted by hand, dead', async () => {
    await untilAnswered(201, () =>
      client.post('/sandboxpools', { name: 'mortal', templateName: 'idle-pod', replicas: 3 }),
    );
    const [evicted, deleted, dead] = [
      await claim('mortal'),
      await claim('mortal'),
      await claim('mortal'),
    ];
    await controlPlane().kubectl('delete', 'pdb', '--all', '-n', namespace); // it would be refused
    const eviction = JSON.stringify({
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: podNameOf(evicted), namespace },
    });
    await controlPlane().kubectlAs(
      'admin',
      [
        'create',
        '--raw',
        `/api/v1/namespaces/${namespace}/pods/${podNameOf(evicted)}/eviction`,
        '-f',
        '-',
      ],
      eviction,
    );
    await finished(evicted, 'killed');
    await controlPlane().kubectl('delete', 'pod', podNameOf(deleted), '-n', namespace);
    await finished(deleted, 'deleted');
    const status = {
      status: {
        phase: 'Failed',
        containerStatuses: [
          {
            name: 'main',
            image: 'x',
            imageID: '',
            ready: false,
            restartCount: 0,
            state: { terminated: { exitCode: 3 } },
          },
        ],
      },
    };
    await controlPlane().patch(
      ['pod', podNameOf(dead), '-n', namespace, '--subresource=status'],
      status,
    );
    await finished(dead, 'exited');
  });

  it('count no start as failed while the namespace is being deleted, and end its sandboxes', async () => {
    const lime = replicas().namespaceOf('lime');
    const gil = new HttpClient(replicas().replica(0).port, await replicas().tenant('lime', 'gil'));
    await untilAnswered(201, () =>
      gil.post('/sandboxpools', { name: 'doomed', templateName: 'idle-pod', replicas: 2 }),
    );
    const { json } = await untilAnswered(201, () => gil.post('/sandboxes', { poolName: 'doomed' }));
    await controlPlane().kubectl('delete', 'namespace', lime, '--timeout=150s');
    const admin = new HttpClient(replicas().replica(0).port, replicas().adminKey);
    await eventually(async () => {
      const items = (await admin.get('/sandboxes?phase=Completed&all=true')).json.items ?? [];
      return items.some(
        (item) =>
          item['sandboxId'] === json.sandbox?.['sandboxId'] && item['endReason'] === 'deleted',
      );
    }, 'it is in the history');
    await eventually(async () => {
      const pools = (await admin.get('/sandboxpools?all=true')).json.items;
      return pools?.every(({ name }) => name !== 'doomed') === true;
    }, 'its pool is gone');
    const moves = replicas()
      .list.flatMap(({ log }) => log.split('\n'))
      .filter((line) => line.includes('startFailure') && line.includes('doomed'));
    expect(moves.filter((line) => !line.includes('"startFailures":0'))).to.deep.equal([]);
  });
});
