import { expect } from 'chai';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';
import { loadConfig } from '../../src/daemon/config/config.ts';
import { readInstanceTypes } from '../../src/daemon/config/instance-types.ts';
import { fleetKeyOf, signatureCheck } from '../../src/fleet/link/fleet-keys.ts';
import { parseApiKey } from '../../src/model/api-key-text.ts';
import { CHART, helm, type Manifest, manifestOf, renderChart } from '../../local-cluster/chart.ts';
import { chartResults } from '../../local-cluster/chart-results.ts';
import { staleFiles } from '../../script/generated-files.ts';
import { installCustomResources } from '../../local-cluster/custom-resources.ts';
import { onTheCluster } from '../support/cluster/shared-cluster.ts';

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

interface PodSpec {
  readonly containers: readonly Readonly<Record<string, unknown>>[];
  readonly volumes: readonly { readonly name: string; readonly [part: string]: unknown }[];
}

const templateOf = (
  manifests: readonly Manifest[],
  kind: 'Deployment' | 'StatefulSet',
): { readonly metadata: Manifest['metadata']; readonly spec: PodSpec } =>
  (manifestOf(manifests, kind)['spec'] as { template: ReturnType<typeof templateOf> }).template;

const podOf = (manifests: readonly Manifest[], kind: 'Deployment' | 'StatefulSet'): PodSpec =>
  templateOf(manifests, kind).spec;

const READING = ['get', 'list', 'watch'];
/** Everything that can be chosen is chosen. */
const EVERYTHING = {
  image: { repository: 'registry.example.com:5000/sandpool', digest: `sha256:${'0'.repeat(64)}` },
  imagePullSecrets: [{ name: 'registry' }],
  secrets: { existing: 'of-ours' },
  teamQuota: { pods: '20', 'limits.cpu': 4 },
  redis: {
    urls: ['rediss://a.example.com:6380', 'rediss://b.example.com:6380'],
    mode: 'cluster',
    username: 'sandpool',
    existingSecret: 'redis',
    withCa: true,
    bundled: { enabled: false },
  },
  tls: { existingSecret: 'certificate' },
  config: { quotas: { sandboxes: 5 }, listen: '[::]:8080' },
  audit: { stdout: true, volume: { persistentVolumeClaim: { claimName: 'audit' } } },
  instanceTypes: [
    { name: 'tiny', baseResources: { limits: { cpu: '100m', memory: '64Mi' } }, maxMultiplier: 2 },
  ],
  podAnnotations: { a: 'b' },
  podLabels: { c: 'd' },
  sandboxes: {
    runtimeClassName: 'gvisor',
    labels: { team: 'red' },
    registry: 'registry.example.com/mirror',
  },
  nodeSelector: { disk: 'ssd' },
  tolerations: [{ key: 'x', operator: 'Exists' }],
  priorityClassName: 'system-cluster-critical',
  affinity: {
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight: 1, preference: { matchExpressions: [{ key: 'a', operator: 'Exists' }] } },
      ],
    },
  },
  serviceAccount: { annotations: { e: 'f' } },
  service: { type: 'LoadBalancer', port: 443, annotations: { g: 'h' } },
  podDisruptionBudget: { maxUnavailable: '50%' },
  metrics: { annotations: false, dashboard: { enabled: true } },
  ingress: {
    enabled: true,
    className: 'nginx',
    annotations: { 'nginx.ingress.kubernetes.io/proxy-read-timeout': '330' },
    hosts: ['sandpool.example.com'],
    tls: [{ secretName: 'certificate' }],
  },
  compatibleApi: {
    domain: 'sandboxes.example.com',
    ingress: {
      enabled: true,
      className: 'nginx',
      annotations: { 'nginx.ingress.kubernetes.io/proxy-body-size': '0' },
      tls: [{ secretName: 'wildcard' }],
    },
  },
  extraEnv: [{ name: 'OTEL_SERVICE_NAME', value: 'sandpool' }],
  extraVolumes: [{ name: 'extra', emptyDir: {} }],
  extraContainers: [
    {
      name: 'shipper',
      image: 'registry.example.com/shipper:1',
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
    },
  ],
  extraVolumeMounts: [{ name: 'extra', mountPath: '/extra' }],
  networkPolicy: {
    from: [{ namespaceSelector: { matchLabels: { name: 'ingress' } } }],
    metricsFrom: [{ namespaceSelector: { matchLabels: { name: 'monitoring' } } }],
    apiServerPorts: [8443],
    extraEgress: [{ ports: [{ port: 4318 }] }],
  },
};
const LEAST = {
  teamLimits: [],
  priorityLevel: '',
  networkPolicy: { enabled: false },
  isolateSandboxes: false,
  createNamespaces: false,
  admissionPolicy: false,
  sandboxTemplates: { default: null, web: null, 'code-interpreter-v1': null },
};

const MANAGER = { role: 'manager', clusterId: 'hub' };
const WORKER = {
  clusterId: 'west',
  fleet: { managers: ['wss://hub.example.com'], joinTokenSecret: 'token' },
};

describe('the chart', () => {
  it('passes helm lint', () => {
    expect(helm(['lint', '--strict', CHART, '--set', 'image.repository=sandpool'])).to.include(
      '0 chart(s) failed',
    );
  });

  it("lets the daemon read the cluster and write templates, and the rest only in tenants' namespaces", () => {
    const manifests = renderChart({ values: { teams: ['default', 'red'] } });
    const rulesOf = (name: string): readonly Rule[] =>
      manifestOf(manifests, 'ClusterRole', name)['rules'] as readonly Rule[];
    const beyondReading = rulesOf('sandpool').filter(({ verbs }) =>
      verbs.some((verb) => !READING.includes(verb)),
    );

    expect([...new Set(beyondReading.flatMap(({ resources }) => resources))]).to.deep.equal([
      'sandboxtemplates',
      'sandboxtemplates/status',
    ]);
    expect(
      manifests
        .filter(({ kind }) => kind === 'ClusterRoleBinding')
        .map((binding) => (binding['roleRef'] as { name: string }).name),
    ).to.deep.equal(['sandpool']);
    expect(
      manifests
        .filter(({ kind }) => kind === 'RoleBinding')
        .map(({ metadata }) => metadata.namespace),
    ).to.deep.equal(['sandpool-default', 'sandpool-red']);
    for (const { apiGroups, resources, verbs } of [
      ...rulesOf('sandpool'),
      ...rulesOf('sandpool-tenant'),
    ]) {
      expect([...apiGroups, ...resources, ...verbs].join()).not.to.include('*');
      if (resources.includes('secrets'))
        expect(verbs, 'written, and never read').to.deep.equal(['create', 'update', 'delete']);
    }
    const everywhere = rulesOf('sandpool').flatMap(({ resources }) => resources);
    for (const kind of ['secrets', 'pods']) expect(everywhere).not.to.include(kind);
  });

  it('lets the daemon read all of its kinds', () => {
    const kinds = readdirSync(join(CHART, 'crds'))
      .map((file) => file.replace('.yaml', ''))
      .sort();
    const readBy = (values: Readonly<Record<string, unknown>>): readonly string[] => {
      const role = manifestOf(renderChart({ values }), 'ClusterRole', 'sandpool');
      const [first] = role['rules'] as readonly Rule[];
      expect(first?.verbs).to.deep.equal(READING);
      return first?.resources.toSorted() ?? [];
    };

    for (const inFleet of [MANAGER, WORKER]) expect(readBy(inFleet)).to.deep.equal(kinds);
    expect(readBy({})).to.deep.equal(kinds.filter((kind) => kind !== 'workerclusters'));
  });

  it('generates a pepper and an admin key that the daemon accepts', () => {
    for (let n = 0; n < 5; n += 1) {
      const { data } = manifestOf(
        renderChart({ values: LEAST }),
        'Secret',
        'sandpool',
      ) as unknown as { data: Record<string, string> };

      expect(clear(data['pepper'])).to.match(/^[0-9a-f]{64}$/);
      expect(parseApiKey(clear(data['admin.key'])), clear(data['admin.key']))
        .to.have.property('keyId')
        .of.length(16);
    }
  });

  it('mounts operators.json of its Secret once the Secret has it', () => {
    for (const existing of ['', 'of-ours']) {
      const { volumes } = podOf(renderChart({ values: { secrets: { existing } } }), 'Deployment');
      const secret = volumes.find(({ name }) => name === 'secrets')?.['secret'];
      // Without a list of keys the Pod has each key that the Secret has, also one that comes later.
      expect(secret)
        .to.include({ secretName: existing || 'sandpool' })
        .and.not.have.property('items');
    }
  });

  it('passes the RuntimeClass, labels and registry of sandboxes to the daemon, and the registry to Redis', () => {
    const sandboxes = {
      runtimeClassName: 'gvisor',
      labels: { team: 'red', 'example.com/a': '' },
      registry: 'registry.example.com/mirror',
    };
    const manifests = renderChart({ values: { sandboxes } });
    const { data } = manifestOf(manifests, 'ConfigMap', 'sandpool') as unknown as {
      data: Record<string, string>;
    };

    const folder = mkdtempSync(join(tmpdir(), 'sandpool-chart-'));
    writeFileSync(join(folder, 'sandpool.yaml'), data['sandpool.yaml'] ?? '');
    const argvOptions = { config: join(folder, 'sandpool.yaml') };

    expect(loadConfig({ env: {}, argvOptions }).config.kubernetes).to.deep.include({
      runtimeClassName: 'gvisor',
      podLabels: ['example.com/a=', 'team=red'],
      registry: 'registry.example.com/mirror',
    });
    rmSync(folder, { recursive: true });
    expect(podOf(manifests, 'StatefulSet').containers[0]?.['image']).to.match(
      /^registry\.example\.com\/mirror\/library\/redis:/,
    );
  });

  it('names both images by digest if configured', () => {
    const digest = `sha256:${'1a'.repeat(32)}`;
    const manifests = renderChart({
      values: { image: { digest }, redis: { bundled: { digest } } },
    });

    expect(podOf(manifests, 'Deployment').containers[0]?.['image']).to.equal(`sandpool@${digest}`);
    expect(podOf(manifests, 'StatefulSet').containers[0]?.['image']).to.match(
      new RegExp(`^docker\\.io/library/redis:\\S+@${digest}$`),
    );
  });

  it("writes the audit to stdout and adds containers to the daemon's Pod if configured", () => {
    const shipper = { name: 'shipper', image: 'registry.example.com/shipper:1' };
    const manifests = renderChart({
      values: {
        audit: { stdout: true },
        config: { audit: { files: 4 } },
        extraContainers: [shipper],
      },
    });
    const { data } = manifestOf(manifests, 'ConfigMap', 'sandpool') as unknown as {
      data: Record<string, string>;
    };

    expect(parse(data['sandpool.yaml'] ?? '').audit).to.deep.equal({ files: 4, stdout: 'on' });
    expect(podOf(manifests, 'Deployment').containers.slice(1)).to.deep.equal([shipper]);
  });

  it('restarts Redis when its configuration changes, for example maxMemory', () => {
    const annotationsOf = (maxMemory: string): Manifest['metadata']['annotations'] =>
      templateOf(renderChart({ values: { redis: { bundled: { maxMemory } } } }), 'StatefulSet')
        .metadata.annotations;

    expect(annotationsOf('512mb')).to.have.property('checksum/config');
    expect(annotationsOf('512mb')).to.deep.equal(annotationsOf('512mb'));
    expect(annotationsOf('512mb')).to.not.deep.equal(annotationsOf('768mb'));
  });

  it("uses the configured instance types, or the daemon's own", () => {
    const { data } = manifestOf(
      renderChart({ values: EVERYTHING }),
      'ConfigMap',
      'sandpool',
    ) as unknown as { data: Record<string, string> };
    const file = join(mkdtempSync(join(tmpdir(), 'sandpool-chart-')), 'instance-types.yaml');
    writeFileSync(file, data['instance-types.yaml'] ?? '');

    expect(
      readInstanceTypes(file).map(({ name, maxMultiplier }) => [name, maxMultiplier]),
    ).to.deep.equal([['tiny', 2]]);
    rmSync(dirname(file), { recursive: true });
    expect(parse(data['sandpool.yaml'] ?? '')).to.deep.include({
      instanceTypes: { file: 'instance-types.yaml' },
    });
    const usual = manifestOf(renderChart(), 'ConfigMap', 'sandpool') as unknown as {
      data: Record<string, string>;
    };
    expect(Object.keys(usual.data)).to.deep.equal(['sandpool.yaml']);
    expect(parse(usual.data['sandpool.yaml'] ?? '')).to.not.have.property('instanceTypes');
  });

  it('installs the alerts, with valid links, and the dashboard', () => {
    const made = renderChart({
      values: {
        metrics: {
          prometheusRule: { enabled: true, runbooks: 'https://git.example.com/sandpool/' },
          dashboard: { enabled: true },
        },
      },
    });
    const alerts = readFileSync(join(CHART, '../../prometheus/alerts.yaml'), 'utf8').replaceAll(
      'runbook_url: docs/',
      'runbook_url: https://git.example.com/sandpool/docs/',
    );
    const dashboard = manifestOf(made, 'ConfigMap', 'sandpool-dashboard');

    expect(manifestOf(made, 'PrometheusRule', 'sandpool')['spec']).to.deep.equal(parse(alerts));
    expect(dashboard.metadata.labels).to.include({ grafana_dashboard: '1' });
    expect(dashboard['data']).to.deep.equal({
      'sandpool.json': readFileSync(join(CHART, '../../grafana/sandpool.json'), 'utf8'),
    });
    expect(
      renderChart().filter(
        ({ kind, metadata }) => kind === 'PrometheusRule' || metadata.name.endsWith('-dashboard'),
      ),
    ).to.deep.equal([]);
  });

  it('is refused without an image, with the setting to add', () => {
    expect(() => helm(['template', 'sandpool', CHART])).to.throw(
      'image.repository must name the image',
    );
  });

  it("prints the next steps without the project's command line", () => {
    const notes =
      helm([
        'install',
        'sandpool',
        CHART,
        '--dry-run=client',
        '--skip-crds',
        '--set',
        'image.repository=sandpool',
      ]).split('NOTES:')[1] ?? '';

    expect(notes)
      .to.include('/sandboxpools')
      .and.to.not.match(/^ *sandpool /m);
  });

  it('explains why it has no autoscaling by load, and renders none', () => {
    const notes = readFileSync(join(CHART, 'templates/NOTES.txt'), 'utf8');
    expect(notes).to.include('The chart has no HorizontalPodAutoscaler: ');
    expect(renderChart({ values: EVERYTHING }).map(({ kind }) => kind)).to.not.include(
      'HorizontalPodAutoscaler',
    );
  });

  it('renders each value file as recorded', () => {
    const results = chartResults();

    expect(staleFiles(results), 'script/generate chart-results writes them').to.deep.equal([]);
    expect(results.size).to.equal(15);
  });

  it('generates a key that identifies the cluster in a fleet', () => {
    const { data } = manifestOf(renderChart({ values: MANAGER }), 'Secret', 'sandpool');
    const pem = (data as Readonly<Record<string, string>>)['fleet.key'] ?? '';
    const { publicKey } = fleetKeyOf(Buffer.from(pem, 'base64').toString());
    expect(signatureCheck(publicKey)).not.to.equal(undefined);
  });

  it("has a template with a web server that a kubelet's probe can reach", () => {
    const web = renderChart().find(
      ({ kind, metadata }) => kind === 'SandboxTemplate' && metadata.name === 'web',
    );
    const { containers, endpoints } = (web?.['spec'] ?? {}) as {
      containers?: readonly { command: readonly string[] }[];
      endpoints?: readonly object[];
    };

    expect(containers?.[0]?.command.at(-1))
      .to.contain('all=0.0.0.0; if [ -e /proc/net/if_inet6 ]; then all=::; fi; exec python3')
      .and.to.not.contain('127.0.0.1');
    expect(endpoints).to.deep.equal([
      { name: 'web', port: 'http', readinessProbe: { httpGet: { path: '/' }, periodSeconds: 2 } },
    ]);
  });

  for (const [values, complaint] of [
    [{ ingress: { enabled: true } }, 'ingress.hosts must name a host'],
    [{ httpRoute: { enabled: true } }, 'httpRoute.parentRefs must name a gateway'],
    [{ httpRoute: { timeout: 'long' } }, '/httpRoute/timeout'],
    [{ compatibleApi: { ingress: { enabled: true } } }, 'compatibleApi.domain must be'],
    [{ compatibleApi: { domain: '*.a.example' } }, '/compatibleApi/domain'],
    [
      { compatibleApi: { domain: 'a.example', httpRoute: { enabled: true } } },
      'compatibleApi.httpRoute.parentRefs must name a gateway',
    ],
    [
      {
        compatibleApi: { domain: 'a.example', ingress: { enabled: true } },
        service: { compatiblePort: 0 },
      },
      'service.compatiblePort must not be 0',
    ],
    [{ extraEnv: [{}] }, '/extraEnv/0'],
    [{ extraVolumeMounts: [{ name: 'a' }] }, '/extraVolumeMounts/0'],
    [{ replicas: 0 }, '/replicas'],
    [{ replica: 1 }, "'replica' not allowed"],
    [{ teams: ['red'] }, '/teams'],
    [{ role: 'manager' }, 'clusterId must be set'],
    [{ ...MANAGER, fleet: { managers: ['wss://h'] } }, 'fleet.managers must be empty'],
    [{ clusterId: 'w', fleet: { managers: ['wss://h'] } }, 'fleet.joinTokenSecret must name'],
    [{ fleet: { managers: ['ws://h'] } }, '/fleet/managers/0'],
    [{ namespacePattern: 'teams' }, '/namespacePattern'],
    [{ config: { assembly: 'embedded' } }, "'assembly'"],
    [{ redis: { urls: ['redis://u:secret@h:1'] } }, '/redis/urls/0'],
    [{ redis: { bundled: { enabled: false } } }, 'redis.urls must name a Redis'],
    [{ redis: { urls: ['redis://h:1'] } }, 'redis.bundled.enabled must be false'],
    [
      { redis: { bundled: { image: 'redis@sha256:0', digest: `sha256:${'0'.repeat(64)}` } } },
      'redis.bundled.digest must be empty',
    ],
    [{ sandboxes: { labels: { 'sandpool.dev/network': 'any' } } }, 'sandpool.dev/network'],
    [{ redis: { existingSecret: 'a' } }, 'has its own Secret'],
    [{ terminationGracePeriodSeconds: 5 }, '/terminationGracePeriodSeconds'],
    [
      { sandboxTemplates: { x: { containers: [{ name: 'main', image: 'host' }] } } },
      '/sandboxTemplates/x',
    ],
  ] as const) {
    it(`refuses ${JSON.stringify(values)}`, () => {
      expect(() => renderChart({ values })).to.throw(complaint);
    });
  }
});

describe('the chart on a cluster', function () {
  const cluster = onTheCluster();
  let namespace: string;
  let namespacePattern: string;

  before(async () => {
    await installCustomResources(cluster());
    namespace = await cluster().namespace();
    namespacePattern = `${namespace}-{team}`;
    await cluster().namespace(`${namespace}-default`);
  });

  /** What the API server says to it, nothing being stored. */
  const said = async (manifests: readonly Manifest[]): Promise<readonly string[]> => {
    const input = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: manifests });
    const { exitCode, stderr } = await cluster().kubectlAs(
      'admin',
      [
        'apply',
        '--server-side',
        '--force-conflicts',
        '--dry-run=server',
        '--validate=strict',
        '-f',
        '-',
      ],
      input,
    );
    return [
      ...(exitCode === 0 ? [] : [`exit code ${exitCode}`]),
      ...stderr.split('\n').filter((line) => line !== ''),
    ];
  };

  for (const [what, values] of [
    ['as it is', {}],
    ['with everything chosen', EVERYTHING],
    ['with the least', LEAST],
  ] as const) {
    it(`is accepted by the API server ${what}, without a warning`, async () => {
      expect(
        await said(
          renderChart({
            release: 'test-sandpool',
            namespace,
            values: { ...values, namespacePattern },
          }),
        ),
      ).to.deep.equal([]);
    });
  }

  it('has definitions that the documented command upgrades after a helm install', async () => {
    const page = readFileSync(new URL('../../docs/kubernetes.md', import.meta.url), 'utf8');
    const [, command = ''] = /`kubectl (apply [^`]*)deploy\/helm\/sandpool\/crds`/.exec(page) ?? [];
    const definition = parse(
      readFileSync(join(CHART, 'crds/userquotas.yaml'), 'utf8'),
    ) as Manifest & { readonly spec: { readonly names: object } };
    const older = {
      ...definition,
      spec: { ...definition.spec, names: { ...definition.spec.names, shortNames: ['older'] } },
    };
    const shortNames = async (): Promise<string> =>
      cluster().kubectl(
        ...['get', 'crd', 'userquotas.sandpool.dev', '-o', 'jsonpath={.spec.names.shortNames}'],
      );
    const asHelm = ['--server-side', '--force-conflicts', '--field-manager=helm', '-f', '-'];
    const installed = await cluster().kubectlAs(
      'admin',
      ['apply', ...asHelm],
      JSON.stringify(older),
    );
    expect([installed.exitCode, await shortNames()], installed.stderr).to.deep.equal([
      0,
      '["older"]',
    ]);

    const { exitCode, stderr } = await cluster().kubectlAs('admin', [
      ...command.trim().split(' '),
      join(CHART, 'crds'),
    ]);

    expect(exitCode, stderr).to.equal(0);
    expect(await shortNames()).to.not.equal('["older"]');
  });

  it('can be installed, upgraded, removed and reinstalled, and keeps its secrets and namespaces', async () => {
    const ownPattern = `${namespace}-own-{team}`;
    const place = ['--namespace', namespace, `--kubeconfig=${cluster().kubeconfig('admin')}`];
    const install = (...more: readonly string[]): string =>
      helm([
        'upgrade',
        '--install',
        'test-sandpool-again',
        CHART,
        '--skip-crds',
        '--set',
        'image.repository=sandpool',
        '--set',
        `namespacePattern=${ownPattern}`,
        ...more,
        ...place,
      ]);
    const secrets = (): Promise<string> =>
      cluster().kubectl(
        'get',
        'secrets',
        '-n',
        namespace,
        '-l',
        'app.kubernetes.io/instance=test-sandpool-again',
        '-o',
        'jsonpath={range .items[*]}{.data}{"\\n"}{end}',
      );
    const uninstall = (): string => helm(['uninstall', 'test-sandpool-again', ...place]);

    install();
    const first = await secrets();
    expect(first.trim().split('\n')).to.have.length(2);
    install('--set', 'replicas=2');
    expect(await secrets()).to.equal(first);
    uninstall();
    expect(
      await cluster().kubectl(
        'get',
        'namespace',
        `${namespace}-own-default`,
        '-o',
        'jsonpath={.status.phase}',
      ),
    ).to.equal('Active');
    install();
    expect(await secrets()).to.equal(first);

    uninstall();
    await cluster().kubectl('delete', 'namespace', `${namespace}-own-default`, '--wait=false');
  });
});

const clear = (text = ''): string => Buffer.from(text, 'base64').toString();
