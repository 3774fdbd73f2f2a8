import { expect } from 'chai';
import { KubernetesSandboxDriver } from '../../src/k8s/sandbox-driver.ts';
import { rewritten } from '../../src/k8s/sandbox-resource.ts';
import type { InstanceRecord } from '../../src/model/sandbox.ts';
import { aClaim, anOrder } from '../support/instance-orders.ts';
import { absent } from './a-memory-api.ts';
import { quietLog } from '../support/quiet-log.ts';
import { TestClock } from '../support/test-clock.ts';
import { testSeals } from '../support/test-seals.ts';

/** Answers what is put into it by path; what is made gets a uid and a revision. */
const aStore = () => {
  const objects = new Map<string, object>();
  let revision = 0;
  const put = (path: string, body: object): object => {
    const { metadata } = body as { readonly metadata: { readonly uid?: string } };
    revision += 1;
    const object = { ...body, metadata: { ...metadata, uid: metadata.uid ?? `uid-${revision}`, resourceVersion: String(revision) } };
    objects.set(path, object);
    return object;
  };
  const client = {
    create: async (path: string, body: { readonly metadata: { readonly name: string } }) => put(`${path}/${body.metadata.name}`, body),
    get: async (path: string) => {
      const object = objects.get(path);
      if (!object) throw absent(path);
      return object;
    },
  };
  return { objects, put, lanes: { lane: () => client, calm: async () => undefined } };
};

describe('a driver whose watch is behind', () => {
  it('says of a sandbox whose Pod an uncached look does not find that it is gone', async () => {
    const store = aStore();
    const driver = new KubernetesSandboxDriver({
      api: store.lanes as never, streams: { whenSilent: () => undefined } as never, volumes: { provided: false, list: async () => [] }, outdated: () => undefined, seals: testSeals, teamOf: (namespace) => namespace, clock: new TestClock(), log: quietLog, pods: { runAsUser: 1_000, terminationGraceSeconds: 0 },
    });
    const { record, definition } = anOrder();
    const containers = definition.containers.map((container) => ({ ...container, image: 'registry.invalid/sandbox:1' }));
    const launched = await driver.launch({ record, definition: { ...definition, containers } }, () => true);
    const [recordPath = '', podPath = ''] = store.objects.keys();
    const { metadata: { uid } } = store.objects.get(recordPath) as { readonly metadata: { readonly uid: string } };
    const claimed: InstanceRecord = { ...launched, state: 'claimed', claim: aClaim() };
    store.put(recordPath, rewritten(claimed, { uid, podUid: undefined }));
    store.objects.delete(podPath);

    const { vitals } = await driver.confirm(launched.id, launched.poolOwner.namespace);

    expect(vitals.kind).to.equal('gone');
  });
});
