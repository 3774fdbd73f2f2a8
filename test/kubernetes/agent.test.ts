import { expect } from 'chai';
import { admissionPolicy } from '../../local-cluster/control-plane/sandpool-rights.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';
import { apiServer } from '../../src/k8s/api/api-client.ts';
import type { ApiServer } from '../../src/k8s/api/api-calls.ts';
import { readClusterAccess } from '../../src/k8s/api/cluster-access.ts';
import { AgentMaps } from '../../src/k8s/sandboxes/pods/agent-maps.ts';
import { agentProgram, readAgents } from '../../src/k8s/sandboxes/pods/agent-programs.ts';
import { AGENT_LABEL, agentMap } from '../../src/k8s/sandboxes/pods/pod-agent.ts';
import { aPod } from '../support/builders/a-pod.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';

const HOUR_MS = 3_600_000;

describe('the ConfigMap of the agent on a real API server', () => {
  const cluster = onTheControlPlane();
  const agents = readAgents();
  const program = agents.programs.get(agents.own) ?? agentProgram(Buffer.from(''));
  let api: ApiServer;
  let namespace: string;
  before(async () => {
    const access = await readClusterAccess(
      { kubeconfig: cluster().kubeconfig('sandpool') },
      quietLog,
    );
    api = apiServer({ metrics: silentMetrics, access, version: 'test' });
    namespace = await cluster().namespace();
  });
  after(() => api.close());

  const someMaps = (clock = new TestClock()): AgentMaps =>
    new AgentMaps({ api: api.lane('background'), agents, clock, log: quietLog });
  const idsThere = async (): Promise<readonly string[]> => {
    const labels = `jsonpath={.items[*].metadata.labels.sandpool\\.dev/agent}`;
    const found = await cluster().kubectl(
      'get',
      'cm',
      '-n',
      namespace,
      '-l',
      AGENT_LABEL,
      '-o',
      labels,
    );
    return found.split(' ').toSorted();
  };

  it('is created with the rights of the daemon, once, unchanged and immutable', async () => {
    await someMaps().provide(namespace, program);
    await someMaps().provide(namespace, program);
    const found = await cluster().kubectl(
      'get',
      'cm',
      '-n',
      namespace,
      '-l',
      AGENT_LABEL,
      '-o',
      'json',
    );
    const { items } = JSON.parse(found) as {
      items: readonly { binaryData: { launcher: string }; immutable: boolean }[];
    };
    expect(items).to.have.length(1);
    expect(items[0]?.immutable).to.equal(true);
    expect(
      Buffer.from(items[0]?.binaryData.launcher ?? '', 'base64').equals(program.bytes),
    ).to.equal(true);
  });

  it('is replaced if somebody created another one of its name before', async () => {
    const of = await cluster().namespace();
    const read = async (): Promise<readonly string[]> => {
      const what = 'jsonpath={.metadata.uid} {.binaryData.launcher}';
      const name = `sandpool-agent-${program.id}`;
      return (await cluster().kubectl('get', 'cm', name, '-n', of, '-o', what)).split(' ');
    };
    await cluster().apply([{ ...agentMap(program, of), binaryData: { launcher: 'b2xk' } }]);
    expect((await read())[1]).to.equal('b2xk');
    await someMaps().provide(of, program);
    const [uid, bytes] = await read();
    expect(bytes).to.equal(program.bytes.toString('base64'));
    await someMaps().provide(of, program);
    expect((await read())[0]).to.equal(uid, 'the agent itself stays');
  });

  it('is deleted after its last Pod if it is an old version', async () => {
    const [mounted, left] = ['mounted', 'left'].map((text) => agentProgram(Buffer.from(text)));
    if (!mounted || !left) throw new Error('there are two');
    await cluster().apply([
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'of-the-team', namespace } },
      agentMap(mounted, namespace),
      agentMap(left, namespace),
    ]);
    const pod = aPod({ name: 'a', namespace }) as { metadata: object };
    const labels = { [AGENT_LABEL]: mounted.id };
    await cluster().apply({ ...pod, metadata: { ...pod.metadata, labels } });
    const clock = new TestClock();
    const maps = someMaps(clock);
    await maps.provide(namespace, program);
    expect(await idsThere()).to.have.members([program.id, mounted.id, left.id]);
    clock.advance(HOUR_MS);
    await maps.provide(namespace, program);
    await eventually(async () => (await idsThere()).length === 2, 'the one without a Pod is gone');
    expect(await idsThere()).to.have.members([program.id, mounted.id]);

    await cluster().kubectl('delete', 'pod', 'a', '-n', namespace, '--force', '--grace-period=0');
    clock.advance(HOUR_MS);
    await maps.provide(namespace, program);
    await eventually(async () => (await idsThere()).length === 1, 'the other one is gone, too');
    expect(await idsThere()).to.deep.equal([program.id]);
    await cluster().kubectl('get', 'cm', 'of-the-team', '-n', namespace);
  });

  it('belongs to the daemon, which can write no other ConfigMap under the admission policy', async () => {
    const policies = admissionPolicy('sandpool') as readonly { metadata: { name: string } }[];
    const made = async (name: string, ...as: readonly string[]): Promise<string> => {
      const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace } };
      const args = [...as, 'create', '--dry-run=server', '-f', '-'];
      return (await cluster().kubectlAs('admin', args, JSON.stringify(map))).stderr;
    };
    const removed = async (name: string): Promise<string> => {
      const args = ['delete', 'cm', name, '-n', namespace, '--dry-run=server'];
      return (await cluster().kubectlAs('admin', args)).stderr;
    };
    await cluster().apply(policies);
    try {
      await eventually(
        async () => (await made('sandpool-agent-x')).includes('are for Sandpool alone to write'),
        'nobody else brings an agent',
      );
      expect(await made('any', '--as=sandpool')).to.include('Sandpool writes ConfigMaps named');
      expect(await made('sandpool-agent-x', '--as=sandpool')).to.equal('');
      expect(await made('any')).to.equal('');
      expect(await removed('of-the-team')).to.equal('');
      expect(await removed(`sandpool-agent-${program.id}`)).to.equal('');
      const every = { query: { labelSelector: '!nothing' } };
      const refused = await api
        .lane('background')
        .remove(`/api/v1/namespaces/${namespace}/configmaps`, {}, every)
        .then(() => 'removed', String);
      expect(refused).to.include('Sandpool writes ConfigMaps named');
      await cluster().kubectl('get', 'cm', 'of-the-team', '-n', namespace);
    } finally {
      await cluster().kubectl(
        'delete',
        'validatingadmissionpolicybinding,validatingadmissionpolicy',
        ...new Set(policies.map(({ metadata }) => metadata.name)),
      );
    }
  });
});
