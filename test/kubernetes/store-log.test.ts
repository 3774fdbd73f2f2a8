import { expect } from 'chai';
import { eventually } from '../support/harness/eventually.ts';
import { ControlPlane } from '../../local-cluster/control-plane.ts';
import { aPod } from '../support/builders/a-pod.ts';
import { Killed } from '../support/chaos/faults/killed.ts';
import { SetBack } from '../support/chaos/faults/set-back.ts';
import { restorable } from '../support/chaos/store-restore.ts';
import { StoreLog } from '../support/chaos/store-log.ts';
import { Timeline } from '../support/chaos/timeline.ts';
import { skipBecause } from '../support/harness/skip-because.ts';

describe('the log of a store', function () {
  let controlPlane: ControlPlane;
  let namespace: string;

  before(async function () {
    if (process.env['TEST_KUBECONFIG'])
      skipBecause(
        this,
        'needs a control plane of its own, and TEST_KUBECONFIG names another cluster',
      );
    controlPlane = await ControlPlane.start({ nodes: 1, legible: true });
    namespace = await controlPlane.namespace();
  });
  after(() => controlPlane?.stop());

  const aReadyPod = async (name: string): Promise<void> => {
    await controlPlane.apply(aPod({ name, namespace }));
    await controlPlane.kubectl(
      'wait',
      '--for=condition=Ready',
      'pod',
      name,
      '-n',
      namespace,
      '--timeout=30s',
    );
  };

  it('shows every change in order, with its time', async () => {
    const log = new StoreLog(controlPlane.etcd, () => performance.now());
    log.start();
    await eventually(() => log.sightings.length > 0, 'a first sighting');
    const before = performance.now();
    await aReadyPod('told');
    await controlPlane.kubectl('delete', 'pod', 'told', '-n', namespace);
    const after = performance.now();
    await eventually(() => (log.sightings.at(-1)?.asked ?? 0) > after, 'a later sighting');
    await log.stop();
    const changes = (await log.read()).filter(
      ({ kind, name }) => kind === 'pod' && name === 'told',
    );
    const vitals = changes.map(({ state }) => (state && 'vitals' in state ? state.vitals : 'gone'));

    expect(vitals.filter((each, n) => each !== vitals[n - 1])).to.deep.equal([
      'starting',
      'ready',
      'gone',
    ]);
    const time = new Timeline(log.sightings);
    for (const { revision } of changes) {
      expect(time.latest(revision)).to.be.above(before);
      expect(time.earliest(revision)).to.be.below(after);
    }
  });

  it('includes a store that was killed in between', async () => {
    const log = new StoreLog(controlPlane.etcd, () => performance.now());
    await aReadyPod('before');
    for (const component of ['etcd', 'kube-apiserver'] as const) {
      const fault = new Killed(
        { kill: () => controlPlane.kill(component), restart: () => controlPlane.begin(component) },
        { what: component, others: 'wait', lastsMs: 0 },
      );
      await fault.begin();
      expect(controlPlane.pidOf(component)).to.equal(undefined);
      await fault.end();
    }
    await eventually(
      () =>
        aReadyPod('after').then(
          () => true,
          () => false,
        ),
      'pods are made again',
    );
    const names = new Set(
      (await log.read()).filter(({ kind }) => kind === 'pod').map(({ name }) => name),
    );
    expect([...names]).to.include.members(['before', 'after']);
  });

  it('shows the changes after the copy if a store was restored, as undone', async () => {
    const log = new StoreLog(controlPlane.etcd, () => performance.now());
    await aReadyPod('kept');
    const fault = new SetBack(restorable(controlPlane, log), 0);
    await fault.begin();
    await aReadyPod('lost');
    await fault.end();
    await eventually(
      () =>
        aReadyPod('later').then(
          () => true,
          () => false,
        ),
      'pods are made again',
    );
    const changes = (await log.read()).filter(({ kind }) => kind === 'pod');
    const [rewind] = log.rewinds;
    const last = (name: string): unknown =>
      changes.findLast((change) => change.name === name)?.state;
    expect(last('lost')).to.equal(undefined);
    expect(last('kept')).to.not.equal(undefined);
    expect(last('later')).to.not.equal(undefined);
    expect(
      changes.some(
        ({ name, state, revision }) =>
          name === 'lost' &&
          state !== undefined &&
          revision > (rewind?.kept ?? 0) &&
          revision <= (rewind?.lost ?? 0),
      ),
    ).to.equal(true);
    expect(changes.map(({ revision }) => revision)).to.deep.equal(
      changes.map(({ revision }) => revision).toSorted((a, b) => a - b),
    );
  });
});
