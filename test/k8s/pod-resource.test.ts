import { expect } from 'chai';
import { launchOrderOf } from '../../src/actors/sandbox/launch-order.ts';
import { agentProgram } from '../../src/k8s/sandboxes/pods/agent-programs.ts';
import { checkDefinition } from '../../src/k8s/sandboxes/check-definition.ts';
import { podOf, storedPodOf } from '../../src/k8s/sandboxes/pods/pod-resource.ts';
import { aPool } from '../support/builders/a-pool.ts';
import { execProbe, httpProbe, tcpProbe } from '../support/builders/a-probe.ts';
import { aDefinition, anOrder } from '../support/builders/instance-orders.ts';
import { testAgents } from '../support/builders/test-agents.ts';

interface Made {
  readonly spec: { readonly shareProcessNamespace?: boolean };
}

describe('the Pod of an instance', () => {
  const specOf = (names: readonly string[]): Made['spec'] => {
    const [container] = aDefinition({ image: 'busybox' }).containers;
    const definition = {
      ...aDefinition(),
      containers: names.map((name) => ({ ...container!, name })),
    };
    return (
      podOf(anOrder(definition), 'uid', {
        agents: testAgents,
        runAsUser: 1_000,
        terminationGraceSeconds: 5,
      }) as Made
    ).spec;
  };

  it('has a pid 1 that reaps orphans, so that the main process handles SIGTERM', () => {
    expect(specOf(['main']).shareProcessNamespace).to.equal(true);
  });

  it('uses the scheduling of its template, or none', () => {
    const placement = {
      runtimeClassName: 'gvisor',
      nodeSelector: { disk: 'ssd', 'kubernetes.io/arch': 'amd64' },
      tolerations: [{ operator: 'Exists' as const }],
      priorityClassName: 'low',
      hostUsers: false as const,
    };
    const placed = (part: object): object => {
      const order = anOrder(aDefinition({ image: 'busybox' }, part));
      return (
        podOf(order, 'uid', {
          agents: testAgents,
          runAsUser: 1_000,
          terminationGraceSeconds: 5,
        }) as Made
      ).spec;
    };
    expect(placed({ placement })).to.deep.include(placement);
    const { nodeSelector: _, ...others } = placement;
    expect(placed({})).to.not.have.any.keys(...Object.keys(others));
  });

  it('has the labels, RuntimeClass and registry of the settings, below its own', () => {
    const settings = {
      agents: testAgents,
      runAsUser: 1_000,
      terminationGraceSeconds: 5,
      labels: { team: 'red', 'sandpool.dev/network': 'any' },
      runtimeClassName: 'gvisor',
      registry: 'registry.example.com:5000/mirror',
    };
    const made = (image: string, part: object = {}) =>
      podOf(anOrder(aDefinition({ image }, part)), 'uid', settings) as {
        readonly metadata: { readonly labels: object };
        readonly spec: {
          readonly runtimeClassName: string;
          readonly containers: readonly { readonly image: string }[];
        };
      };
    const { metadata, spec } = made('busybox');
    expect(metadata.labels).to.include({ team: 'red', 'sandpool.dev/network': 'none' });
    expect(spec.runtimeClassName).to.equal('gvisor');
    const own = { placement: { runtimeClassName: 'kata' } };
    expect(made('busybox', own).spec.runtimeClassName).to.equal('kata');

    const imageOf = (image: string, part?: object): string | undefined =>
      made(image, part).spec.containers[0]?.image;
    const mirror = 'registry.example.com:5000/mirror';
    expect(imageOf('busybox:1')).to.equal(`${mirror}/library/busybox:1`);
    expect(imageOf('team/app')).to.equal(`${mirror}/team/app`);
    expect(imageOf('docker.io/library/debian:12')).to.equal(`${mirror}/library/debian:12`);
    expect(imageOf('index.docker.io/debian:12')).to.equal(`${mirror}/library/debian:12`);
    for (const named of ['quay.io/a/b:1', 'localhost/app', '127.0.0.1:5000/app'])
      expect(imageOf(named)).to.equal(named);
    // The password is for the registry that the image names.
    expect(imageOf('team/app', { imagePullSecret: true })).to.equal('team/app');
  });

  it('has the devices and disk of its template as requests and limits', () => {
    const definition = aDefinition({
      image: 'busybox',
      extendedResources: { 'nvidia.com/gpu': 2 },
      ephemeralStorageBytes: 1_024,
    });
    const { spec } = podOf(anOrder(definition), 'uid', {
      agents: testAgents,
      runAsUser: 1_000,
      terminationGraceSeconds: 5,
    }) as { readonly spec: { readonly containers: readonly { readonly resources: object }[] } };
    const amounts = {
      cpu: '1000m',
      memory: String(128 * 2 ** 20),
      'nvidia.com/gpu': '2',
      'ephemeral-storage': '1024',
    };
    expect(spec.containers[0]?.resources).to.deep.equal({ requests: amounts, limits: amounts });
  });

  it('mounts the agent for its CPU architecture, and runs on nodes of it', () => {
    const arm = agentProgram(Buffer.from('for arm64'));
    const agents = { own: 'amd64', programs: new Map([...testAgents.programs, ['arm64', arm]]) };
    const specOn = (nodeSelector?: Readonly<Record<string, string>>) => {
      const definition = aDefinition({ image: 'busybox' }, { placement: { nodeSelector } });
      return podOf(
        anOrder({ ...definition, volumes: [{ claimName: 'data', mountPath: '/data' }] }),
        'uid',
        { agents, runAsUser: 1_000, terminationGraceSeconds: 5 },
      ) as {
        readonly metadata: { readonly labels: Readonly<Record<string, string>> };
        readonly spec: {
          readonly nodeSelector: object;
          readonly volumes: readonly { readonly configMap?: object }[];
          readonly containers: readonly { readonly volumeMounts: readonly object[] }[];
        };
      };
    };
    const { metadata, spec } = specOn({ 'kubernetes.io/arch': 'arm64', disk: 'ssd' });
    expect(spec.volumes[1]).to.deep.equal({
      name: 'sandpool-agent',
      configMap: { name: `sandpool-agent-${arm.id}`, defaultMode: 0o555 },
    });
    expect(spec.containers[0]?.volumeMounts[1]).to.deep.equal({
      name: 'sandpool-agent',
      mountPath: '/.sandpool',
      readOnly: true,
    });
    expect(spec.nodeSelector).to.deep.equal({ 'kubernetes.io/arch': 'arm64', disk: 'ssd' });
    expect(metadata.labels['sandpool.dev/agent']).to.equal(arm.id);

    const own = testAgents.programs.get('amd64')?.id;
    expect(specOn().metadata.labels['sandpool.dev/agent']).to.equal(own);
    expect(specOn().spec.nodeSelector).to.deep.equal({ 'kubernetes.io/arch': 'amd64' });
  });

  it("mounts no container or volume at the agent's path, and needs its processors", () => {
    const refusalOf = (part: object): string | undefined => {
      try {
        checkDefinition({ ...aDefinition({ image: 'busybox' }), ...part }, testAgents);
        return undefined;
      } catch (error) {
        return String(error);
      }
    };
    const mounted = (mountPath: string) => refusalOf({ volumes: [{ claimName: 'a', mountPath }] });
    const placed = (name: string) =>
      refusalOf({ placement: { nodeSelector: { 'kubernetes.io/arch': name } } });

    expect(placed('amd64')).to.equal(undefined);
    expect(placed('s390x')).to.include('spec.nodeSelector').and.include('it may be amd64');
    for (const path of ['/.sandpool', '/.sandpool/below', '//.sandpool/'])
      expect(mounted(path)).to.include('overrides.volumes[0].mountPath');
    expect(mounted('/.sandpools')).to.equal(undefined);
  });

  it('pulls its images again if they need a password', () => {
    const policies = (part: object): unknown => {
      const order = anOrder(aDefinition({ image: 'busybox' }, part));
      const { spec } = podOf(order, 'uid', {
        agents: testAgents,
        runAsUser: 1_000,
        terminationGraceSeconds: 5,
      }) as {
        readonly spec: { readonly containers: readonly { readonly imagePullPolicy?: string }[] };
      };
      return spec.containers.map(({ imagePullPolicy }) => imagePullPolicy);
    };
    expect(policies({ imagePullSecret: true })).to.deep.equal(['Always']);
    expect(policies({ imagePullSecret: 'env-uid' })).to.deep.equal(['Always']);
    expect(policies({})).to.deep.equal([undefined]);
  });

  it('asks node autoscalers to keep it, and has its own grace period for evictions', () => {
    const made = (settings: Partial<Parameters<typeof podOf>[2]>) =>
      podOf(anOrder(aDefinition({ image: 'busybox' })), 'uid', {
        agents: testAgents,
        runAsUser: 1_000,
        terminationGraceSeconds: 5,
        ...settings,
      }) as { readonly metadata: { readonly annotations?: object }; readonly spec: object };
    const guarded = made({ protected: true, evictionGraceSeconds: 30 });
    expect(guarded.metadata.annotations).to.deep.equal({
      'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false',
      'karpenter.sh/do-not-disrupt': 'true',
    });
    expect(guarded.spec).to.include({ terminationGracePeriodSeconds: 30 });
    expect(made({}).metadata).to.not.have.property('annotations');
  });

  it('has the labels of its template, and those of its pool under a separate domain', () => {
    const definition = aDefinition(
      { image: 'busybox' },
      { placement: { podLabels: { app: 'web' }, podAnnotations: { note: 'x y' } } },
    );
    const labels = { team: 'red', app: 'db', 'sandpool.dev/pool-uid': 'x', 'Not a label!': 'x' };
    const order = { ...anOrder(definition), labels };
    const { metadata, spec } = podOf(order, 'uid', {
      agents: testAgents,
      runAsUser: 1_000,
      terminationGraceSeconds: 5,
    }) as { readonly metadata: { readonly labels: object }; readonly spec: object };
    expect(metadata).to.have.property('annotations').that.deep.equals({ note: 'x y' });
    expect(metadata.labels).to.deep.equal({
      app: 'web',
      'pool.sandpool.dev/team': 'red',
      'pool.sandpool.dev/app': 'db',
      'sandpool.dev/pool-uid': order.record.poolUid,
      'sandpool.dev/network': 'none',
      'sandpool.dev/agent': testAgents.programs.get('amd64')?.id,
    });
    expect(spec).to.not.have.any.keys('podLabels', 'podAnnotations');
  });

  it("has up to 16 KiB of its pool's annotations under a separate domain", () => {
    const definition = aDefinition(
      { image: 'busybox' },
      { placement: { podAnnotations: { note: 'the template says' } } },
    );
    const annotations = {
      owner: 'Rita, äöü',
      note: 'the pool says',
      'sandpool.dev/template-name': 'web',
      'cluster-autoscaler.kubernetes.io/safe-to-evict': 'true',
      'Not a name!': 'x',
      nul: 'a\0b',
    };
    const borne = (given: Readonly<Record<string, string>>): Record<string, string> => {
      const pool = { ...aPool({ definition, annotations: given }), revision: '1' };
      const pod = podOf(launchOrderOf(pool, 'i', 0), 'uid', {
        agents: testAgents,
        runAsUser: 1_000,
        terminationGraceSeconds: 5,
      }) as { readonly metadata: { readonly annotations: Record<string, string> } };
      return pod.metadata.annotations;
    };
    expect(borne(annotations)).to.deep.equal({
      note: 'the template says',
      'pool.sandpool.dev/owner': 'Rita, äöü',
      'pool.sandpool.dev/note': 'the pool says',
    });

    // 'ä' has two bytes; the name has 19, its domain included: eight of 2,019 bytes fit.
    const many = Object.fromEntries(
      Array.from({ length: 9 }, (_, n) => [`${8 - n}`, 'ä'.repeat(1_000)]),
    );
    const names = Object.keys(borne({ ...many, z: 'short' })).sort();
    expect(names).to.deep.equal([
      'note',
      ...Array.from({ length: 8 }, (_, n) => `pool.sandpool.dev/${n}`),
      'pool.sandpool.dev/z',
    ]);
  });

  it('keeps the processes of its containers apart', () => {
    expect(specOf(['main', 'beside'])).to.not.have.property('shareProcessNamespace');
  });

  it('explains the remedy if the kubelet cannot reach the port of its probe', () => {
    const unready = (readinessProbe: ReturnType<typeof httpProbe>): unknown => {
      const made = podOf(anOrder(aDefinition({ image: 'busybox', readinessProbe })), 'uid', {
        agents: testAgents,
        runAsUser: 1_000,
        terminationGraceSeconds: 5,
      }) as { readonly metadata: object };
      const status = {
        phase: 'Running',
        containerStatuses: [{ name: 'main', state: { running: {} } }],
      };
      return storedPodOf({
        ...made,
        metadata: { ...made.metadata, uid: 'u', resourceVersion: '1' },
        status,
      })?.vitals;
    };
    for (const probe of [httpProbe(80, '/'), tcpProbe(80)])
      expect(unready(probe)).to.have.property('advice');
    expect(unready(execProbe(['true']))).to.not.have.property('advice');
  });
});
