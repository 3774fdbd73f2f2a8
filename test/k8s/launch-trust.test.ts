import { expect } from 'chai';
import { launchOrderOf } from '../../src/actors/sandbox/launch-order.ts';
import { DefinitionRefused, OutcomeUnknown } from '../../src/contracts/sandbox-driver.ts';
import type { Volume } from '../../src/contracts/volumes.ts';
import { KubernetesSandboxDriver } from '../../src/k8s/sandboxes/sandbox-driver.ts';
import { unavailable } from '../../src/model/refusals.ts';
import type { InstanceDefinition } from '../../src/model/templates/template.ts';
import { aStoredPool } from '../support/builders/a-pool.ts';
import { aDefinition, anOrder } from '../support/builders/instance-orders.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { rejection } from '../support/harness/rejection.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { testSeals } from '../support/builders/test-seals.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';
import { testAgents } from '../support/builders/test-agents.ts';

interface CreatedPod {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> };
  readonly spec: {
    readonly imagePullSecrets?: readonly { readonly name: string }[];
    readonly volumes?: readonly object[];
  };
}

const bound = (claimName: string): Volume => ({
  claimName,
  displayName: claimName,
  capacity: '1Gi',
  accessModes: [],
  storageClass: '',
  phase: 'Bound',
});

/** What a driver creates for a definition, whoever wrote that. */
const launchedWith = async (
  definition: InstanceDefinition,
  list: () => Promise<readonly Volume[]> = async () => [],
): Promise<readonly CreatedPod[]> => {
  const created: { path: string; body: object }[] = [];
  const client = {
    create: async (path: string, body: { readonly metadata: object }) => {
      created.push({ path, body });
      return {
        ...body,
        metadata: { ...body.metadata, uid: `uid-${created.length}`, resourceVersion: '1' },
      };
    },
  };
  const driver = new KubernetesSandboxDriver({
    metrics: silentMetrics,
    api: { lane: () => client, calm: async () => undefined } as never,
    streams: { whenSilent: () => undefined } as never,
    volumes: { provided: true, list },
    outdated: () => undefined,
    seals: testSeals,
    teamOf: (namespace) => namespace,
    clock: new TestClock(),
    log: quietLog,
    pods: { agents: testAgents, runAsUser: 1_000, terminationGraceSeconds: 0 },
  });
  await driver.launch(anOrder(definition), () => true);
  return created.filter(({ path }) => path.endsWith('/pods')).map(({ body }) => body as CreatedPod);
};

const runnable = (part: Partial<InstanceDefinition> = {}): InstanceDefinition =>
  aDefinition({ image: 'registry.invalid/sandbox:1' }, part);

describe('a Pod with a forged definition', () => {
  it('has a label against network access, which no definition can change', async () => {
    const [pod] = await launchedWith(runnable());
    const open = { ...runnable(), network: 'open' } as unknown as InstanceDefinition;

    expect(pod?.metadata.labels).to.include({ 'sandpool.dev/network': 'none' });
    expect(await rejection(launchedWith(open))).to.be.instanceOf(DefinitionRefused);
  });

  it('mounts no volumes that its namespace does not offer', async () => {
    const definition = runnable({ volumes: [{ claimName: 'etcd-data', mountPath: '/data' }] });

    const refused = await rejection(launchedWith(definition, async () => [bound('own')]));
    const [pod] = await launchedWith(definition, async () => [bound('etcd-data')]);

    expect(refused)
      .to.be.instanceOf(DefinitionRefused)
      .and.have.property('message')
      .that.includes('etcd-data');
    expect(pod?.spec.volumes).to.have.lengthOf(2); // and that of the agent
  });

  it('waits while the volumes cannot be listed, without a failed start', async () => {
    const definition = runnable({ volumes: [{ claimName: 'own', mountPath: '/data' }] });

    const refused = await rejection(
      launchedWith(definition, () => Promise.reject(unavailable('away'))),
    );

    expect(refused).to.be.instanceOf(OutcomeUnknown);
  });

  it('pulls only with the passwords of its own pool or env', () => {
    const forged = runnable({ imagePullSecret: 'another-env' });
    const pool = aStoredPool({ uid: 'own-pool', definition: forged });

    expect(launchOrderOf(pool, 'id', 0).definition.imagePullSecret).to.equal(true);
    const member = launchOrderOf({ ...pool, env: { uid: 'own-env', name: 'e' } }, 'id', 0);
    expect(member.definition.imagePullSecret).to.equal('own-env');
    expect(
      launchOrderOf({ ...pool, definition: runnable() }, 'id', 0).definition,
    ).to.not.have.property('imagePullSecret');
  });
});
