import { expect } from 'chai';
import { eventually } from '../support/harness/eventually.ts';
import { ControlPlane } from '../../local-cluster/control-plane.ts';
import { aPod } from '../support/builders/a-pod.ts';
import { POOL_LABEL } from '../../src/k8s/sandboxes/sandbox-resource.ts';
import { Killed } from '../support/chaos/faults/killed.ts';
import { LabelsEdited } from '../support/chaos/faults/labels-edited.ts';
import { NamespaceDeleted } from '../support/chaos/faults/namespace-deleted.ts';
import { RemovedByHand } from '../support/chaos/faults/removed-by-hand.ts';
import { SetBack } from '../support/chaos/faults/set-back.ts';
import { UnreadyNode } from '../support/chaos/faults/unready-node.ts';
import { WritesRefused } from '../support/chaos/faults/writes-refused.ts';
import { restorable } from '../support/chaos/store-restore.ts';
import { StoreLog } from '../support/chaos/store-log.ts';
import { Timeline } from '../support/chaos/timeline.ts';
import { Dice } from '../support/builders/hostile-values.ts';
import { skipBecause } from '../support/harness/skip-because.ts';

describe('faults of a cluster, and the log of its store', function () {
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

  const conditionOf = async (kind: string, name: string): Promise<string> =>
    await controlPlane.kubectl(
      'get',
      kind,
      name,
      '-n',
      namespace,
      '-o',
      'jsonpath={.status.conditions[?(@.type=="Ready")].status}',
    );
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

  it('tells every change in order, and places it in time', async () => {
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

  it('reads the log of a store that was killed in between', async () => {
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

  it('deletes Pods by hand', async () => {
    await aReadyPod('sb-by-hand');
    const fault = new RemovedByHand(controlPlane, {
      resource: 'pods',
      namespace,
      dice: new Dice(1),
    });
    await fault.begin();
    expect(fault.removes).to.deep.equal(['by-hand']);
    await eventually(
      async () =>
        (await controlPlane.kubectl(
          'get',
          'pod',
          'sb-by-hand',
          '-n',
          namespace,
          '--ignore-not-found',
        )) === '',
      'it is gone',
    );
    await fault.end();
  });

  it('has writes refused in one namespace, while another takes them', async () => {
    const other = await controlPlane.namespace();
    const mayWrite = async (where: string): Promise<boolean> =>
      (await controlPlane.kubectlAs('sandpool', ['auth', 'can-i', 'delete', 'pods', '-n', where]))
        .exitCode === 0;
    const fault = new WritesRefused(controlPlane, { namespace, refused: 'right', lastsMs: 0 });
    await fault.begin();
    await eventually(async () => !(await mayWrite(namespace)), 'it may write nothing');
    expect(await mayWrite(other)).to.equal(true);
    await fault.end();
    await eventually(() => mayWrite(namespace), 'it may write again');
  });

  it('has no place for Pods in one namespace, and then again', async () => {
    const fault = new WritesRefused(controlPlane, { namespace, refused: 'places', lastsMs: 0 });
    const pod = JSON.stringify(aPod({ name: 'tried', namespace }));
    const tried = async (): Promise<string> =>
      (await controlPlane.kubectlAs('admin', ['create', '--dry-run=server', '-f', '-'], pod))
        .stderr;
    await fault.begin();
    await eventually(async () => (await tried()).includes('exceeded quota'), 'it is refused');
    await fault.end();
    await eventually(async () => (await tried()) === '', 'it is taken again');
  });

  it('takes a label off Pods, and puts it back', async () => {
    const id = '01a20406-0000-7000-8000-000000000001';
    await aReadyPod(`sb-${id}`);
    await controlPlane.kubectl('label', 'pod', `sb-${id}`, '-n', namespace, `${POOL_LABEL}=a-pool`);
    const label = async (): Promise<string> =>
      await controlPlane.kubectl(
        'get',
        'pod',
        `sb-${id}`,
        '-n',
        namespace,
        '-o',
        'jsonpath={.metadata.labels}',
      );
    const fault = new LabelsEdited(controlPlane, {
      resource: 'pods',
      namespace,
      dice: new Dice(1),
      lastsMs: 0,
    });
    await fault.begin();
    expect(fault.edits).to.deep.equal([id]);
    expect(await label()).to.not.contain(POOL_LABEL);
    await fault.end();
    expect(await label()).to.contain('"a-pool"');
  });

  it('deletes a namespace with all that is in it', async () => {
    const passing = await controlPlane.namespace();
    await controlPlane.kubectl('create', 'configmap', 'of-before', '-n', passing);
    const fault = new NamespaceDeleted(controlPlane, {
      namespace: passing,
      renew: async () => {
        await controlPlane.namespace(passing);
      },
      lastsMs: 0,
    });
    await fault.begin();
    await fault.end();
    expect(
      await controlPlane.kubectl(
        'get',
        'configmap',
        'of-before',
        '-n',
        passing,
        '--ignore-not-found',
      ),
    ).to.equal('');
  });

  it('tells of a store that was set back what came after the copy, and that it is undone', async () => {
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

  it('has a node not ready, and it and its Pods ready again', async () => {
    await aReadyPod('on-the-node');
    const fault = new UnreadyNode(controlPlane, { node: 'node-0', lastsMs: 0 });
    await fault.begin();
    await eventually(
      async () => (await conditionOf('node', 'node-0')) === 'False',
      'the node is not ready',
    );
    // As the cluster's controllers do, in their time.
    await controlPlane.kubectl(
      'patch',
      'pod',
      'on-the-node',
      '-n',
      namespace,
      '--subresource=status',
      '--type=strategic',
      '-p',
      JSON.stringify({ status: { conditions: [{ type: 'Ready', status: 'False' }] } }),
    );
    await fault.end();
    expect(await conditionOf('node', 'node-0')).to.equal('True');
    expect(await conditionOf('pod', 'on-the-node')).to.equal('True');
  });
});
