import { expect } from 'chai';
import { NotJoinable } from '../../src/contracts/sandbox-driver.ts';
import { podNameOf } from '../../src/model/identifiers.ts';
import { PodDriver } from '../support/cluster/a-pod-driver.ts';
import { STAGE_LABEL } from '../../local-cluster/control-plane/kwok-config.ts';
import { eventually, NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';

describe('a faulty node', function () {
  const controlPlane = onTheControlPlane();
  let pods: PodDriver;

  before(async () => {
    pods = await PodDriver.alone(controlPlane());
  });
  after(() => pods.close());

  const kubectl = (...args: readonly string[]): Promise<string> => controlPlane().kubectl(...args);
  const nodeOf = (id: string): Promise<string> =>
    kubectl('get', 'pod', podNameOf(id), '-n', pods.namespace, '-o', 'jsonpath={.spec.nodeName}');
  const last = (id: string) => pods.log.of(id).at(-1);
  const isUnavailable = (id: string, reason: string): Promise<void> =>
    eventually(() => {
      const vitals = last(id)?.vitals;
      return vitals?.kind === 'unavailable' && vitals.reason.includes(reason);
    }, `unavailable: ${reason}`);
  const isAvailable = (id: string): Promise<void> =>
    eventually(() => last(id)?.vitals.kind === 'available', 'available again');

  it('makes its idle and running sandboxes unavailable while it is cordoned, and they go on', async () => {
    const idle = await pods.launched();
    const node = await nodeOf(idle.id);
    await kubectl('cordon', node);
    await isUnavailable(idle.id, 'its node is cordoned');
    expect(
      (await pods.driver.idle(idle.poolUid, pods.namespace, 1)).map(({ id }) => id),
    ).to.not.include(idle.id);
    expect(last(idle.id)?.record?.state).to.equal('idle');
    await kubectl('uncordon', node);
    await isAvailable(idle.id);
  });

  it('makes its sandboxes unavailable while it is not ready', async () => {
    const idle = await pods.launched();
    const node = await nodeOf(idle.id);
    await kubectl('label', 'node', node, `${STAGE_LABEL}=unready`);
    await isUnavailable(idle.id, 'its node is not ready: Kwok');
    await kubectl('label', 'node', node, `${STAGE_LABEL}-`);
    await isAvailable(idle.id);
  });

  it('respects the budget when it is drained; without it, claimed sandboxes are killed', async () => {
    const [idle, claimed] = [await pods.launched(), await pods.claimed()];
    const nodes = [...new Set(await Promise.all([nodeOf(idle.id), nodeOf(claimed.id)]))];
    const drain = (timeout: string) =>
      controlPlane().kubectlAs('admin', [
        'drain',
        ...nodes,
        '--force',
        '--delete-emptydir-data', // the agent's
        `--pod-selector=sandpool.dev/pool-uid=${idle.poolUid}`,
        `--timeout=${timeout}`,
      ]);
    const refused = await drain('3s');
    expect(refused.exitCode).to.equal(1);
    expect(refused.stderr).to.contain("violate the pod's disruption budget");
    expect(last(claimed.id)?.record?.state).to.equal('claimed');
    expect(last(claimed.id)?.vitals).to.have.property('nodeLeaving', true);

    await kubectl('delete', 'pdb', '--all', '-n', pods.namespace);
    expect((await drain('90s')).exitCode).to.equal(0);
    for (const { id } of [idle, claimed]) await pods.log.when(id, 'gone');
    await kubectl('uncordon', ...nodes);
    expect(pods.log.of(claimed.id).findLast(({ record }) => record)?.record?.end).to.deep.equal({
      reason: 'killed',
      exitCode: null,
    });
  });

  it('hands out none of its idle sandboxes for some seconds after a command without an answer', async () => {
    const name = 'node-that-falls-silent';
    await controlPlane().addNode(name);
    await kubectl('wait', '--for=condition=Ready', `node/${name}`, '--timeout=60s');
    const others = (await kubectl('get', 'nodes', '-o', 'jsonpath={.items[*].metadata.name}'))
      .split(' ')
      .filter((node) => node !== name);
    await kubectl('cordon', ...others);
    try {
      const [idle, claimed] = [await pods.launched(), await pods.claimed()];
      // Where nobody listens.
      await controlPlane().patch(['node', name, '--subresource=status'], {
        status: { daemonEndpoints: { kubeletEndpoint: { Port: 1 } } },
      });
      const ways: readonly (() => Promise<unknown>)[] = [
        () =>
          pods.driver.exec(
            claimed.id,
            { argv: ['true'], timeoutMs: NEVER_COMES_MS, outputLimit: 10 },
            new AbortController().signal,
          ),
        () => pods.driver.attach(claimed.id, { argv: ['sh'], cols: 80, rows: 24 }),
        () => pods.driver.dial(claimed.id, 7_000, new AbortController().signal),
      ];
      const silences = (): number =>
        pods.log
          .of(idle.id)
          .filter(
            ({ vitals }) => 'reason' in vitals && vitals.reason === 'its node does not answer',
          ).length;
      for (const [n, way] of ways.entries()) {
        expect(await rejection(way()))
          .to.be.instanceOf(NotJoinable)
          .with.property('message', 'the node of the sandbox does not answer; try again');
        await eventually(() => silences() === n + 1, 'it was unavailable');
        await isAvailable(idle.id);
      }
      expect(last(claimed.id)?.vitals.kind).to.equal('available');
    } finally {
      await kubectl('uncordon', ...others);
      await kubectl('delete', 'node', name);
    }
  });

  it('makes its sandboxes unavailable when it is removed', async () => {
    const name = 'node-of-this-test';
    await controlPlane().addNode(name);
    await kubectl('wait', '--for=condition=Ready', `node/${name}`, '--timeout=60s');
    const others = (await kubectl('get', 'nodes', '-o', 'jsonpath={.items[*].metadata.name}'))
      .split(' ')
      .filter((node) => node !== name);
    await kubectl('cordon', ...others);
    try {
      const idle = await pods.launched();
      expect(await nodeOf(idle.id)).to.equal(name);
      await kubectl('delete', 'node', name);
      await isUnavailable(idle.id, 'its node does not exist');
    } finally {
      await kubectl('uncordon', ...others);
    }
  });
});
