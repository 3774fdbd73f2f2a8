import { expect } from 'chai';
import { IdleLook } from '../../src/k8s/sandboxes/idle-look.ts';
import { InstanceMirror } from '../../src/k8s/sandboxes/instance-mirror.ts';
import type { StoredPod } from '../../src/k8s/sandboxes/pods/pod-resource.ts';
import { newSandboxObject, type StoredSandbox } from '../../src/k8s/sandboxes/sandbox-resource.ts';
import type { InstanceFact, Vitals } from '../../src/model/sandbox.ts';
import { anOrder } from '../support/builders/instance-orders.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

const READY: Vitals = { kind: 'available', startedAt: 1 };
const STARTING: Vitals = { kind: 'starting' };

/**
 * A pool whose records are idle and whose Pods the mirror has as starting; `ready`: those that are
 * not any more, which it comes to know if it `hears`.
 */
const aMirroredPool = (
  size: number,
  ready: readonly string[],
  {
    hears = false,
    onTrouble = false,
    shown = [] as readonly string[],
    ends = [] as readonly string[],
  } = {},
) => {
  const { record } = anOrder();
  let trouble = onTrouble;
  const ids = Array.from({ length: size }, (_, n) => `i${n}`);
  const mirror = new InstanceMirror({
    report: () => undefined,
    missesPod: () => undefined,
    nodeTrouble: () => (trouble ? 'its node is not ready' : undefined),
  });
  const items = ids.map((id, n) => {
    const born = newSandboxObject({ ...record, id, createdAt: 1_000 + n }) as {
      readonly metadata: object;
    };
    return { ...born, metadata: { ...born.metadata, uid: `uid-${id}`, resourceVersion: '1' } };
  });
  for (const id of ids)
    mirror.putPod(onTrouble || shown.includes(id) ? { ...aPod(id), vitals: READY } : aPod(id));
  const read: string[] = [];
  const nodes: string[] = [];
  const asked: string[] = [];
  const look = new IdleLook({
    clock: new TestClock(),
    mirror,
    api: { list: async () => ({ metadata: { resourceVersion: '7' }, items }) } as never,
    lookAtNode: async (name) => {
      nodes.push(name);
      trouble = false;
    },
    podsReached: async (_namespace, revision) => {
      asked.push(revision);
      for (const id of ends) mirror.dropSandbox(id, `uid-${id}`);
      for (const id of ends) mirror.dropPod(aPod(id));
      if (hears)
        for (const id of ready) mirror.putPod({ ...aPod(id), revision: '2', vitals: READY });
      return hears;
    },
    read: async (stored: StoredSandbox): Promise<InstanceFact> => {
      const { id } = stored.record;
      read.push(id);
      if (ready.includes(id)) mirror.putPod({ ...aPod(id), revision: '2', vitals: READY });
      return { id, record: stored.record, vitals: ready.includes(id) ? READY : STARTING };
    },
  });
  return {
    look: (atLeast = 1) => look.look(record.poolUid, record.poolOwner.namespace, atLeast),
    read,
    asked,
    nodes,
  };
};

const aPod = (id: string): StoredPod => ({
  namespace: 'alpha',
  id,
  uid: `pod-${id}`,
  ownerUid: `uid-${id}`,
  revision: '1',
  nodeName: 'node-0',
  endsBy: undefined,
  isForced: false,
  disruption: undefined,
  vitals: STARTING,
});

describe('an uncached list of idle instances', () => {
  it('includes an instance with a ready Pod that the mirror does not show yet', async () => {
    const pool = aMirroredPool(3, ['i1']);
    expect((await pool.look()).map(({ id }) => id)).to.deep.equal(['i1']);
  });

  it('continues up to the requested number if the mirror shows fewer', async () => {
    const pool = aMirroredPool(3, ['i1'], { hears: true, shown: ['i0'] });
    expect((await pool.look()).map(({ id }) => id)).to.deep.equal(['i0']);
    expect((await pool.look(2)).map(({ id }) => id)).to.deep.equal(['i0', 'i1']);
  });

  it('omits instances that ended while it read others', async () => {
    const pool = aMirroredPool(3, ['i1'], { hears: true, shown: ['i0'], ends: ['i0'] });
    expect((await pool.look(2)).map(({ id }) => id)).to.deep.equal(['i1']);
  });

  it('trusts a mirror that has caught up with the list, however many are starting', async () => {
    const pool = aMirroredPool(150, ['i149'], { hears: true });
    expect((await pool.look()).map(({ id }) => id)).to.deep.equal(['i149']);
    expect(pool).to.deep.include({ asked: ['7'], read: [] });
  });

  it('checks the node of a candidate, which may have recovered', async () => {
    const pool = aMirroredPool(2, [], { hears: true, onTrouble: true });
    expect((await pool.look()).map(({ id }) => id)).to.deep.equal(['i0', 'i1']);
    expect(pool.nodes).to.deep.equal(['node-0']);
  });

  it('checks no nodes of starting Pods', async () => {
    const pool = aMirroredPool(2, [], { hears: true });
    await pool.look();
    expect(pool.nodes).to.deep.equal([]);
  });

  it('reads at most the Pods of the twenty oldest if the mirror does not catch up', async () => {
    const pool = aMirroredPool(150, []);
    expect(await pool.look()).to.deep.equal([]);
    expect(pool.read).to.deep.equal(Array.from({ length: 20 }, (_, n) => `i${n}`));
  });
});
