import { expect } from 'chai';
import { InstanceMirror } from '../../src/k8s/sandboxes/instance-mirror.ts';
import type { InstanceMirrorDeps } from '../../src/k8s/sandboxes/instance-mirror-deps.ts';
import { storedPodOf, type StoredPod } from '../../src/k8s/sandboxes/pods/pod-resource.ts';
import type { StoredSandbox } from '../../src/k8s/sandboxes/sandbox-resource.ts';
import type { InstanceFact } from '../../src/model/sandbox.ts';
import { ALICE } from '../support/builders/instance-orders.ts';

const ID = 'an-instance';
const UUID = '01932d5a-0000-7a01-8000-0242ac120002';
const RECORD_UID = 'uid-of-the-record';

const aMirror = ({ podsTrouble }: Partial<InstanceMirrorDeps> = {}) => {
  const facts: InstanceFact[] = [];
  const mirror = new InstanceMirror({
    report: (fact) => {
      facts.push(fact);
    },
    missesPod: () => undefined,
    nodeTrouble: () => undefined,
    podsTrouble,
  });
  void mirror.begin(); // there is nothing yet
  return { mirror, facts };
};

const aSandbox = (revision: string): StoredSandbox => ({
  uid: RECORD_UID,
  podUid: 'uid-of-the-pod',
  terminating: false,
  record: {
    id: ID,
    revision,
    state: 'claimed',
    poolUid: 'p',
    poolName: 'p',
    poolOwner: ALICE,
    createdAt: 1,
    updateRevision: 'r',
    cpu: '1',
    memory: '1Gi',
    containerImages: {},
    startupTimeoutMs: 1,
    claim: { owner: ALICE, claimedAt: 2, idleTimeoutMs: 0, maxLifetimeMs: 0 },
  },
});

const aPod = (revision: string): StoredPod => ({
  namespace: ALICE.namespace,
  id: ID,
  uid: 'uid-of-the-pod',
  ownerUid: RECORD_UID,
  revision,
  nodeName: 'node-0',
  endsBy: undefined,
  isForced: false,
  disruption: undefined,
  vitals: { kind: 'available', startedAt: 1 },
});

describe('the mirror of instances', () => {
  it('reports complete instances during the fill, and those without record or Pod after it', async () => {
    const facts: InstanceFact[] = [];
    const mirror = new InstanceMirror({
      report: (fact) => {
        facts.push(fact);
      },
      missesPod: () => undefined,
      nodeTrouble: () => undefined,
    });
    mirror.putSandbox({
      ...aSandbox('1'),
      record: { ...aSandbox('1').record, id: 'lacks-its-pod' },
    });
    mirror.putPod(aPod('1'));
    expect(facts).to.have.length(0);
    mirror.putSandbox(aSandbox('2'));
    expect(facts.map(({ id, vitals }) => `${id} ${vitals.kind}`)).to.deep.equal([
      `${ID} available`,
    ]);

    await mirror.begin();

    expect(facts.map(({ id }) => id)).to.deep.equal([ID, 'lacks-its-pod']);
  });

  it('reports its initial content in slices, each instance once', async () => {
    const facts: InstanceFact[] = [];
    const mirror = new InstanceMirror({
      report: (fact) => {
        facts.push(fact);
        // as hosting an actor does
        for (const until = performance.now() + 1; performance.now() < until;);
      },
      missesPod: () => undefined,
      nodeTrouble: () => undefined,
    });
    const ids = Array.from({ length: 60 }, (_, n) => `instance-${n}`);
    for (const id of ids)
      mirror.putSandbox({ ...aSandbox('1'), record: { ...aSandbox('1').record, id } });
    let [turns, over] = [0, false];
    const begun = mirror.begin().finally(() => {
      over = true;
    });
    for (; !over; turns++)
      await new Promise<void>((resolve) => {
        setImmediate(resolve);
      });
    await begun;
    expect(turns).to.be.greaterThan(3);
    expect(facts.map(({ id }) => id)).to.deep.equal(ids);
  });

  it('hands out nothing whose Pod may have ended while it cannot read Pods', () => {
    const troubles: string[] = [];
    const { mirror, facts } = aMirror({ podsTrouble: () => troubles[0] });
    mirror.putPod(aPod('1'));
    mirror.putSandbox(aSandbox('2'));

    troubles.push('rights are missing');
    mirror.namespaceChanged(ALICE.namespace);
    expect(facts.at(-1)?.vitals).to.deep.include({ kind: 'unavailable', nodeInTrouble: true });
    troubles.pop();
    mirror.namespaceChanged(ALICE.namespace);
    expect(facts.at(-1)?.vitals.kind).to.equal('available');
  });

  it('does not restore a locally removed object at an earlier watch event', () => {
    const { mirror, facts } = aMirror();
    mirror.putPod(aPod('1'));
    mirror.putSandbox(aSandbox('2'));
    mirror.dropPod(aPod('1'));
    mirror.dropSandbox(ID, RECORD_UID);
    facts.length = 0;

    mirror.putPod(aPod('4'));
    mirror.putSandbox(aSandbox('3'));

    expect(facts).to.deep.equal([]);
    expect(mirror.sandbox(ID)).to.equal(undefined);
    expect(mirror.pod(ID)).to.equal(undefined);
  });

  it('takes the times of readiness from the condition of the Pod, but not if its node fails', () => {
    const facts: InstanceFact[] = [];
    const troubles: string[] = [];
    const mirror = new InstanceMirror({
      report: (fact) => {
        facts.push(fact);
      },
      missesPod: () => undefined,
      nodeTrouble: () => troubles[0],
    });
    void mirror.begin();
    const ready = (
      revision: string,
      status: 'True' | 'False',
      lastTransitionTime: string,
    ): void => {
      const read = storedPodOf({
        metadata: {
          namespace: ALICE.namespace,
          name: `sb-${UUID}`,
          uid: 'p',
          resourceVersion: revision,
          ownerReferences: [{ kind: 'Sandbox', uid: RECORD_UID }],
        },
        spec: { nodeName: 'node-0' },
        status: {
          phase: 'Running',
          startTime: '2026-01-01T00:00:00Z',
          conditions: [{ type: 'Ready', status, lastTransitionTime }],
        },
      });
      if (read) mirror.putPod(read);
    };
    const { record } = aSandbox('1');
    mirror.putSandbox({ ...aSandbox('1'), podUid: 'p', record: { ...record, id: UUID } });

    ready('2', 'True', '2026-01-01T00:00:05Z');
    ready('3', 'False', '2026-01-01T00:00:07Z');
    ready('4', 'True', '2026-01-01T00:00:09Z');
    troubles.push('it is drained');
    mirror.nodeChanged('node-0');

    const shown = facts.flatMap(({ vitals }) =>
      vitals.kind === 'available' || vitals.kind === 'unavailable'
        ? [
            {
              kind: vitals.kind,
              since: vitals.since && new Date(vitals.since).getUTCSeconds(),
              ...('nodeInTrouble' in vitals ? { nodeInTrouble: true } : {}),
            },
          ]
        : [],
    );
    expect(shown).to.deep.equal([
      { kind: 'available', since: 5 },
      { kind: 'unavailable', since: 7 },
      { kind: 'available', since: 9 },
      { kind: 'unavailable', since: undefined, nodeInTrouble: true },
    ]);
  });

  it('marks instances from a replaced store as unrelated to their earlier facts', () => {
    const { mirror, facts } = aMirror();
    mirror.putSandbox(aSandbox('7'));
    mirror.putPod(aPod('8'));
    mirror.dropPod(aPod('8'));
    mirror.dropSandbox(ID, RECORD_UID);
    expect(facts.at(-1)?.record).to.equal(undefined);

    const [key, uid] = [`${ALICE.namespace}/sb-${ID}`, 'uid-of-the-pod'];
    mirror.sandboxes
      .list({ afresh: true })
      .put({ key, uid: RECORD_UID, revision: '2', record: aSandbox('2') });
    mirror.pods
      .of(key)
      .list({ afresh: true })
      .put({ key, uid, revision: '3', record: aPod('3') });

    expect(facts.at(-1)).to.deep.include({ id: ID, afresh: true });
    expect(facts.at(-1)?.record?.revision).to.equal('2');
    expect(facts.at(-1)?.vitals.kind).to.equal('available');
  });

  it('accepts another object of the same name', () => {
    const { mirror, facts } = aMirror();
    mirror.putSandbox(aSandbox('2'));
    mirror.dropSandbox(ID, RECORD_UID);
    mirror.putSandbox({ ...aSandbox('5'), uid: 'another' });
    expect(facts.at(-1)?.record?.revision).to.equal('5');
  });
});
