import { expect } from 'chai';
import { IdleLook } from '../../src/k8s/idle-look.ts';
import { InstanceMirror } from '../../src/k8s/instance-mirror.ts';
import type { StoredPod } from '../../src/k8s/pod-resource.ts';
import { bornSandbox, type StoredSandbox } from '../../src/k8s/sandbox-resource.ts';
import type { InstanceFact, Vitals } from '../../src/model/sandbox.ts';
import { anOrder } from '../support/instance-orders.ts';
import { TestClock } from '../support/test-clock.ts';

const READY: Vitals = { kind: 'available', startedAt: 1 };
const STARTING: Vitals = { kind: 'starting' };

/** A pool whose records are idle and whose Pods the mirror has as starting; `ready`: those that are not any more. */
const aPool = (size: number, ready: readonly string[]) => {
  const { record } = anOrder();
  const ids = Array.from({ length: size }, (_, n) => `i${n}`);
  const mirror = new InstanceMirror({ report: () => undefined, missesPod: () => undefined, nodeTrouble: () => undefined });
  const items = ids.map((id, n) => {
    const born = bornSandbox({ ...record, id, createdAt: 1_000 + n }) as { readonly metadata: object };
    return { ...born, metadata: { ...born.metadata, uid: `uid-${id}`, resourceVersion: '1' } };
  });
  for (const id of ids) mirror.putPod(aPod(id));
  const read: string[] = [];
  const look = new IdleLook({
    clock: new TestClock(), mirror,
    api: { list: async () => ({ metadata: {}, items }) } as never,
    read: async (stored: StoredSandbox): Promise<InstanceFact> => {
      const { id } = stored.record;
      read.push(id);
      return { id, record: stored.record, vitals: ready.includes(id) ? READY : STARTING };
    },
  });
  return { look: () => look.look(record.poolUid, record.poolOwner.namespace), read };
};

const aPod = (id: string): StoredPod => ({
  namespace: 'alpha', id, uid: `pod-${id}`, ownerUid: `uid-${id}`, revision: '1', nodeName: 'node-0', endsBy: undefined, isForced: false, disruption: undefined, vitals: STARTING,
});

describe('a look for idle instances', () => {
  it('finds one whose Pod is ready, and whose mirror does not know it yet', async () => {
    const pool = aPool(3, ['i1']);
    expect((await pool.look()).map(({ id }) => id)).to.deep.equal(['i1']);
  });

  it('reads the Pods of the five oldest, and no more', async () => {
    const pool = aPool(12, []);
    expect(await pool.look()).to.deep.equal([]);
    expect(pool.read).to.deep.equal(['i0', 'i1', 'i2', 'i3', 'i4']);
  });
});
