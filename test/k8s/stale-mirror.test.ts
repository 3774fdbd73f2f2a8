import { expect } from 'chai';
import { podPath } from '../../src/k8s/sandboxes/pods/pod-resource.ts';
import { KubernetesSandboxDriver } from '../../src/k8s/sandboxes/sandbox-driver.ts';
import {
  newSandboxObject,
  POOL_LABEL,
  rewritten,
  sandboxPath,
} from '../../src/k8s/sandboxes/sandbox-resource.ts';
import { podNameOf } from '../../src/model/identifiers.ts';
import type { InstanceRecord } from '../../src/model/sandbox.ts';
import { aClaim, anOrder } from '../support/builders/instance-orders.ts';
import { aDriver } from './a-driver.ts';
import { absent, MemoryApi } from './a-memory-api.ts';
import { eventually } from '../support/harness/eventually.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { testSeals } from '../support/builders/test-seals.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';
import { testAgents } from '../support/builders/test-agents.ts';

/** Serves what is put into it by path; what is made gets a uid and a revision. */
const aStore = () => {
  const objects = new Map<string, object>();
  let revision = 0;
  const put = (path: string, body: object): object => {
    const { metadata } = body as { readonly metadata: { readonly uid?: string } };
    revision += 1;
    const object = {
      ...body,
      metadata: {
        ...metadata,
        uid: metadata.uid ?? `uid-${revision}`,
        resourceVersion: String(revision),
      },
    };
    objects.set(path, object);
    return object;
  };
  const client = {
    create: async (path: string, body: { readonly metadata: { readonly name: string } }) => {
      if (path.endsWith('/configmaps')) return body; // the agent
      return put(`${path}/${body.metadata.name}`, body);
    },
    get: async (path: string) => {
      const object = objects.get(path);
      if (!object) throw absent(path);
      return object;
    },
  };
  return { objects, put, lanes: { lane: () => client, calm: async () => undefined } };
};

describe('a driver with a delayed watch', () => {
  it('reports a sandbox as gone if an uncached read finds no Pod', async () => {
    const store = aStore();
    const driver = new KubernetesSandboxDriver({
      metrics: silentMetrics,
      api: store.lanes as never,
      streams: { whenSilent: () => undefined } as never,
      volumes: { provided: false, list: async () => [] },
      outdated: () => undefined,
      seals: testSeals,
      teamOf: (namespace) => namespace,
      clock: new TestClock(),
      log: quietLog,
      pods: { agents: testAgents, runAsUser: 1_000, terminationGraceSeconds: 0 },
    });
    const { record, definition } = anOrder();
    const containers = definition.containers.map((container) => ({
      ...container,
      image: 'registry.invalid/sandbox:1',
    }));
    const launched = await driver.launch(
      { record, definition: { ...definition, containers } },
      () => true,
    );
    const [recordPath = '', podPath = ''] = store.objects.keys();
    const {
      metadata: { uid },
    } = store.objects.get(recordPath) as { readonly metadata: { readonly uid: string } };
    const claimed: InstanceRecord = { ...launched, state: 'claimed', claim: aClaim() };
    store.put(recordPath, rewritten(claimed, { uid, podUid: undefined }));
    store.objects.delete(podPath);

    const { vitals } = await driver.confirm(launched.id, launched.poolOwner.namespace);

    expect(vitals.kind).to.equal('gone');
  });

  for (const [look, looks] of [
    [
      'a list of idle instances',
      (driver, { poolUid, poolOwner }) => driver.idle(poolUid, poolOwner.namespace, 1),
    ],
    [
      'a read of the sandbox',
      (driver, { id, poolOwner }) => driver.confirm(id, poolOwner.namespace),
    ],
  ] satisfies readonly (readonly [
    string,
    (driver: KubernetesSandboxDriver, record: InstanceRecord) => Promise<unknown>,
  ])[]) {
    it(`keeps a sandbox that is created and claimed while ${look} looks for its Pod`, async () => {
      const api = new MemoryApi();
      const { driver, facts, last } = await aDriver(api);
      const record: InstanceRecord = { ...anOrder().record, state: 'idle', revision: '' };
      const {
        id,
        poolOwner: { namespace },
      } = record;
      const [recordAt, podAt] = [sandboxPath(namespace, id), podPath(namespace, podNameOf(id))];
      const {
        metadata: { uid },
      } = api.put(recordAt, newSandboxObject(record));
      const read = api.holdRead(podAt);
      const looking = looks(driver, record);
      await read.begun;
      api.hold('pods');
      const ownRead = api.holdRead(podAt); // of a claimed sandbox whose Pod is not known
      const pod = {
        metadata: {
          name: podNameOf(id),
          namespace,
          labels: { [POOL_LABEL]: record.poolUid },
          ownerReferences: [{ kind: 'Sandbox', name: podNameOf(id), uid }],
        },
        spec: { nodeName: 'n1' },
        status: {
          phase: 'Running',
          startTime: '2026-01-01T00:00:00Z',
          conditions: [
            { type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' },
          ],
        },
      };
      const {
        metadata: { uid: podUid },
      } = api.put(podAt, pod);
      api.put(
        recordAt,
        rewritten({ ...record, state: 'claimed', claim: aClaim() }, { uid, podUid }),
      );
      await eventually(() => last(id)?.record?.claim !== undefined, 'the claim is told');
      read.letGo();
      await looking;
      ownRead.letGo();
      api.letGo();
      await eventually(() => last(id)?.vitals.kind === 'available', 'the Pod is told');
      expect(facts.filter((fact) => fact.vitals.kind === 'gone')).to.deep.equal([]);
      await driver.stop();
    });
  }
});
