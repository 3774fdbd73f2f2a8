import { expect } from 'chai';
import { stringify } from 'yaml';
import {
  DEFINITIONS_ANNOTATION,
  DEFINITIONS_VERSION,
  InstalledDefinitions,
} from '../../src/k8s/records/installed-definitions.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { anApiOf } from './a-record-store.ts';
import { installCustomResources } from '../../local-cluster/custom-resources.ts';
import { onTheCluster } from '../support/cluster/shared-cluster.ts';
import { asMergePatch } from '../../local-cluster/control-plane/cluster.ts';

describe('the custom resources', function () {
  const cluster = onTheCluster();
  let namespace: string;
  let count = 0;

  before(async () => {
    await installCustomResources(cluster());
    namespace = await cluster().namespace();
  });

  const template = (spec: object, metadata: object = {}): object => ({
    apiVersion: 'sandpool.dev/v1alpha1',
    kind: 'SandboxTemplate',
    metadata: { name: `t-${++count}`, ...metadata },
    spec,
  });
  const container = (part: object = {}): object =>
    template({ containers: [{ name: 'main', image: 'busybox', ...part }] });
  const pool = (spec: object, metadata: object = {}): object => ({
    apiVersion: 'sandpool.dev/v1alpha1',
    kind: 'SandboxPool',
    metadata: { name: `p-${++count}`, namespace, ...metadata },
    spec,
  });
  const env = (spec: object): object => ({
    apiVersion: 'sandpool.dev/v1alpha1',
    kind: 'SandboxEnv',
    metadata: { name: `e-${++count}`, namespace },
    spec: { templateRef: { name: 'x' }, ...spec },
  });
  const group = (part: object = {}): object => ({
    name: 'm',
    enabled: true,
    minReplicas: 0,
    maxReplicas: 4,
    scaleUpPolicy: {
      mode: 'Moderate',
      cooldownSeconds: 60,
      idleThresholdSeconds: 10,
      idleZeroQuietWindowSeconds: 60,
      saturationCooldownSeconds: 120,
    },
    scaleDownPolicy: {
      idleTimeoutSeconds: 600,
      stabilizationSeconds: 300,
      protectionWindowSeconds: 120,
    },
    ...part,
  });
  const sandbox = (part: object = {}): object => ({
    apiVersion: 'sandpool.dev/v1alpha1',
    kind: 'Sandbox',
    metadata: { name: `s-${++count}`, namespace },
    spec: {
      format: 1,
      state: 'idle',
      poolUid: 'u',
      poolName: 'p',
      poolOwner: { team: 'a', user: 'b' },
      createdAt: '2026-01-01T00:00:00.123Z',
      updateRevision: 'r',
      cpu: '1',
      memory: '1Gi',
      containerImages: { main: 'busybox' },
      startupTimeoutMs: 1,
      ...part,
    },
  });
  /** What the API server says to it, nothing being stored; empty where it is taken. */
  const said = async (object: object): Promise<string> =>
    (
      await cluster().kubectlAs(
        'admin',
        ['create', '--dry-run=server', '-f', '-'],
        stringify(object),
      )
    ).stderr.trim();

  it('accept values within the bounds', async () => {
    const probe = { httpGet: { port: 'web', path: '/ready' } };
    const full = template({
      description: 'ä"\u0001',
      startupTimeout: '1m30s',
      idleTimeout: '0',
      network: 'none',
      endpoints: [
        { name: 'web', port: 'web', readinessProbe: { tcpSocket: {} } },
        { name: 'raw', port: 81 },
      ],
      containers: [
        {
          name: 'main',
          image: 'busybox',
          command: ['sh'],
          args: ['-c', 'x'],
          env: [{ name: 'A_1', value: '' }],
          workingDir: '/a',
          ports: [{ name: 'web', containerPort: 80 }],
          resources: { requests: { cpu: '10m' }, limits: { cpu: '256', memory: '4Ti' } },
          readinessProbe: probe,
        },
      ],
    });

    for (const object of [
      full,
      pool({ templateName: 'x' }),
      pool({ templateName: 'x', replicas: 0, labels: { 'Not a label!': 'x' } }),
      sandbox(),
      env({}),
      env({ members: [{ name: 'm', config: { scalingGroup: 'm' } }], groups: [group()] }),
    ])
      expect(await said(object)).to.equal('');
  });

  for (const [what, object, complaint] of [
    [
      'a member of a group that there is not',
      () => env({ members: [{ name: 'm', config: { scalingGroup: 'none' } }], groups: [group()] }),
      'scalingGroup must be one of groups',
    ],
    [
      'two members of one name',
      () => env({ members: [{ name: 'm' }, { name: 'm' }] }),
      'Duplicate value',
    ],
    [
      'a group whose bounds contradict each other',
      () => env({ groups: [group({ minReplicas: 5 })] }),
      'minReplicas must be at most maxReplicas',
    ],
    ['a mode of an env that is none', () => env({ mode: 'Other' }), 'spec.mode'],
    ['a template without containers', () => template({ containers: [] }), 'spec.containers'],
    [
      'nine containers',
      () =>
        template({
          containers: Array.from({ length: 9 }, (_, i) => ({ name: `c${i}`, image: 'x' })),
        }),
      'must have at most 8 items',
    ],
    [
      'two containers of one name',
      () =>
        template({
          containers: [
            { name: 'a', image: 'x' },
            { name: 'a', image: 'x' },
          ],
        }),
      'Duplicate value',
    ],
    [
      "a container's name that is no label",
      () => container({ name: 'A' }),
      'spec.containers[0].name',
    ],
    [
      'an unknown field',
      () => container({ privileged: true }),
      'unknown field "spec.containers[0].privileged"',
    ],
    [
      'a variable that is none',
      () => container({ env: [{ name: '1A', value: '' }] }),
      'env[0].name',
    ],
    [
      'too little memory',
      () => container({ resources: { limits: { memory: '15Mi' } } }),
      'must be a memory quantity from 16Mi to 4Ti',
    ],
    [
      'too much cpu',
      () => container({ resources: { requests: { cpu: '257' } } }),
      'must be a cpu quantity from 10m to 256',
    ],
    ['a path with ..', () => container({ workingDir: '/a/../b' }), 'must be a path without ..'],
    [
      'a probe of two kinds',
      () => container({ readinessProbe: { tcpSocket: { port: 1 }, exec: { command: ['x'] } } }),
      'must have exactly one of',
    ],
    [
      'a probe without a port',
      () => container({ readinessProbe: { tcpSocket: {} } }),
      'port is required',
    ],
    [
      'port 65536',
      () => container({ readinessProbe: { tcpSocket: { port: 65536 } } }),
      'must be a port from 1 to 65535',
    ],
    [
      'a duration that is none',
      () => template({ idleTimeout: '5 min', containers: [{ name: 'a', image: 'x' }] }),
      'spec.idleTimeout',
    ],
    [
      "a template's name that is no label",
      () => template({ containers: [{ name: 'a', image: 'x' }] }, { name: 'a.b' }),
      'the name must be a DNS-1123 label',
    ],
    [
      'a pool of nothing',
      () => pool({ replicas: 1 }),
      'templateName is required if there is neither template nor overrides.image',
    ],
    [
      'a pool of two templates',
      () => pool({ templateName: 'x', template: { containers: [{ name: 'a', image: 'x' }] } }),
      'template cannot be combined with templateName',
    ],
    [
      "an inline template's unknown field",
      () => pool({ template: { containers: [{ name: 'a', image: 'x', privileged: true }] } }),
      'unknown field "spec.template.containers[0].privileged"',
    ],
    [
      'a replica too few',
      () => pool({ templateName: 'x', replicas: 1, minReplicas: 2 }),
      'replicas must be at least minReplicas',
    ],
    [
      'a replica too many',
      () => pool({ templateName: 'x', replicas: 2, maxReplicas: 1 }),
      'replicas must be at most maxReplicas',
    ],
    [
      'a maxUnavailable that is none',
      () => pool({ templateName: 'x', updateStrategy: { maxUnavailable: '101%' } }),
      'spec.updateStrategy.maxUnavailable',
    ],
    [
      'a volume outside',
      () =>
        pool({
          templateName: 'x',
          overrides: { volumes: [{ claimName: 'c', mountPath: '/a/../b' }] },
        }),
      'must be a path without ..',
    ],
    [
      '10,001 replicas',
      () => pool({ templateName: 'x', replicas: 10_001 }),
      'less than or equal to 10000',
    ],
    [
      'replicas as text',
      () => pool({ templateName: 'x', replicas: '2' }),
      'must be of type integer',
    ],
    [
      '65 labels',
      () =>
        pool({
          templateName: 'x',
          labels: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`l${i}`, ''])),
        }),
      'must have at most 64',
    ],
    [
      'a claimed sandbox without a claim',
      () => sandbox({ state: 'claimed' }),
      'claim is there exactly where state is claimed',
    ],
    ['a sandbox of no state', () => sandbox({ state: 'free' }), 'Unsupported value: "free"'],
  ] as const) {
    it(`refuse ${what}`, async () => {
      expect(await said(object())).to.include(complaint);
    });
  }

  it('refuse to give a claimed sandbox to another user, or to unclaim it', async () => {
    const born = sandbox() as { metadata: { name: string }; spec: object };
    const claim = {
      team: 'a',
      user: 'b',
      claimedAt: '2026-01-01T00:00:00.000Z',
      idleTimeoutMs: 0,
      maxLifetimeMs: 0,
    };
    const put = async (spec: object): Promise<string> =>
      (
        await cluster().kubectlAs(
          'admin',
          ['replace', '-f', '-'],
          stringify({ ...born, spec: { ...born.spec, ...spec } }),
        )
      ).stderr.trim();
    await cluster().apply(born);

    expect(await put({ state: 'claimed', claim })).to.equal('');
    expect(await put({ state: 'claimed', claim: { ...claim, idleTimeoutMs: 5 } })).to.equal('');
    expect(await put({ state: 'claimed', claim: { ...claim, user: 'c' } })).to.include(
      'claimed at most once',
    );
    expect(await put({})).to.include('claimed at most once');
  });

  it('refuse to remove the filled fields of a pool', async () => {
    const made = pool({ templateName: 'x' }) as { metadata: { name: string } };
    await cluster().apply(made);
    const patch = (merge: object) =>
      cluster().kubectlAs('admin', [
        'patch',
        'sbp',
        made.metadata.name,
        '-n',
        namespace,
        ...asMergePatch(merge),
      ]);

    expect((await patch({ spec: { replicas: 4 } })).exitCode).to.equal(0);
    const resolved = {
      format: 1,
      uid: 'u',
      bornAs: 'a/b',
      bornAt: '2026-01-01T00:00:00Z',
      createdAt: '2026-01-01T00:00:00Z',
      team: 'a',
      user: 'b',
      replicas: 4,
      renderedFrom: 'h',
      templateVersion: '1',
      definition: { any: [{ thing: 1 }] },
      updateRevision: 'r',
      breaker: { failures: 0, pausedUntil: 0, reason: '' },
      deleting: 'none',
    };
    expect((await patch({ resolved })).stderr).to.equal('');
    expect(
      JSON.parse(
        await cluster().kubectl(
          'get',
          'sbp',
          made.metadata.name,
          '-n',
          namespace,
          '-o',
          'jsonpath={.resolved}',
        ),
      ),
    ).to.deep.equal(resolved);
    expect(
      (await cluster().kubectlAs('admin', ['replace', '-f', '-'], stringify(made))).stderr,
    ).to.include('must stay');
  });

  it('show an older version to a replica with its own rights', async () => {
    const api = await anApiOf(cluster(), 'sandpool');
    const older = async (): Promise<readonly string[]> => {
      const problems: string[] = [];
      const definitions = new InstalledDefinitions({
        api: api.lane('background'),
        clock: new TestClock(),
        log: quietLog,
        outdated: (object, why) => {
          if (why !== undefined) problems.push(object);
        },
      });
      await definitions.start();
      definitions.stop();
      expect(definitions.warnings()).to.deep.equal([]);
      return problems;
    };
    const annotate = (value: string): Promise<string> =>
      cluster().kubectl('annotate', 'crd', 'approvals.sandpool.dev', value);
    expect(await older()).to.deep.equal([]);
    await annotate(`${DEFINITIONS_ANNOTATION}-`);
    expect(await older()).to.deep.equal(['the definition approvals.sandpool.dev']);
    await annotate(`${DEFINITIONS_ANNOTATION}=${DEFINITIONS_VERSION}`);
    expect(await older()).to.deep.equal([]);
    await api.close();
  });

  it('show the important columns, by short names', async () => {
    const shown = async (kind: string): Promise<readonly string[]> =>
      (await cluster().kubectl('get', kind, '-A'))
        .split('\n')[0]
        ?.trim()
        .split(/\s{2,}/)
        .filter((column) => column !== 'NAMESPACE') ?? [];
    await cluster().apply(container());

    expect(await shown('sbt')).to.deep.equal(['NAME', 'VERSION', 'PROBLEM', 'AGE']);
    expect(await shown('sbp')).to.deep.equal([
      'NAME',
      'READY',
      'IDLE',
      'RUNNING',
      'REPLICAS',
      'PHASE',
      'TEMPLATE',
      'TEAM',
      'USER',
      'PROBLEM',
      'AGE',
    ]);
    expect(await shown('sbx')).to.deep.equal(['NAME', 'STATE', 'POOL', 'USER', 'CLAIMED', 'AGE']);
  });
});
