import { expect } from 'chai';
import {
  ContainerGone,
  InstanceGone,
  type ExecOutcome,
} from '../../src/contracts/sandbox-driver.ts';
import { podNameOf } from '../../src/model/identifiers.ts';
import type { LaunchOrder, InstanceFact } from '../../src/model/sandbox.ts';
import { PodDriver } from '../support/cluster/a-pod-driver.ts';
import { eventually, NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { aContainer } from '../support/builders/instance-orders.ts';
import { rejection } from '../support/harness/rejection.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';

type States = Readonly<Record<'web' | 'agent', 'runs' | number>>;

describe('a sandbox of several containers', function () {
  const controlPlane = onTheControlPlane();
  let pods: PodDriver;

  before(async () => {
    pods = await PodDriver.alone(controlPlane());
  });
  after(() => pods.close());

  /**
   * API servers sort the names of a record's images: the first container is not the first of those.
   */
  const order = (): LaunchOrder => {
    const containers = ['web', 'agent'].map((name) => aContainer({ name, image: 'busybox' }));
    const { record, definition } = pods.order('busybox', { definition: { containers } });
    return {
      record: { ...record, containerImages: { web: 'busybox', agent: 'busybox' } },
      definition,
    };
  };

  /** As the kubelet would tell of the containers. */
  const turn = async (id: string, states: States): Promise<void> => {
    const startedAt = '2026-01-01T00:00:00Z';
    const containerStatuses = Object.entries(states)
      .reverse()
      .map(([name, state]) => ({
        name,
        image: 'busybox',
        imageID: 'busybox',
        ready: state === 'runs',
        restartCount: 0,
        state:
          state === 'runs'
            ? { running: { startedAt } }
            : {
                terminated: { exitCode: state, reason: 'Error', startedAt, finishedAt: startedAt },
              },
      }));
    const conditions = [
      {
        type: 'Ready',
        status: 'False',
        reason: 'ContainersNotReady',
        lastTransitionTime: startedAt,
      },
    ];
    await controlPlane().patch(
      ['pod', podNameOf(id), '-n', pods.namespace, '--subresource=status'],
      { status: { phase: 'Running', conditions, containerStatuses } },
    );
  };

  const shows = (id: string, isSo: (fact: InstanceFact) => boolean, what: string): Promise<void> =>
    eventually(() => pods.log.of(id).some(isSo), what);

  const exec = (id: string, container?: string): Promise<ExecOutcome> =>
    pods.driver.exec(
      id,
      { argv: ['true'], timeoutMs: NEVER_COMES_MS, outputLimit: 100, container },
      new AbortController().signal,
    );

  it('lists its containers in the order of its template', async () => {
    const { id } = await pods.claimed(order());
    expect(Object.keys((await pods.driver.read(id)).record?.containerImages ?? {})).to.deep.equal([
      'web',
      'agent',
    ]);
  });

  it('survives the end of a secondary container, reports it, and refuses commands there', async () => {
    const { id } = await pods.claimed(order());
    await turn(id, { web: 'runs', agent: 3 });
    await shows(
      id,
      ({ vitals }) =>
        'endedContainers' in vitals && vitals.endedContainers?.agent === 'exit code 3',
      'its end is told',
    );
    expect((await exec(id)).exitCode).to.equal(0);
    expect((await exec(id, 'web')).exitCode).to.equal(0);
    expect(await rejection(exec(id, 'agent')))
      .to.be.instanceOf(ContainerGone)
      .with.property('message')
      .that.includes('"agent"');
    expect(pods.log.kinds(id)).to.not.include('gone');
  });

  it('ends with the first container, with its exit code, and stops the others', async () => {
    const { id } = await pods.claimed(order());
    await turn(id, { web: 7, agent: 'runs' });
    const { vitals } = await pods.log.when(id, 'gone');
    expect(vitals).to.deep.equal({
      kind: 'gone',
      exitCode: 7,
      reason: 'Error: its main process ended with exit code 7',
      remains: true,
    });
    expect(await rejection(exec(id))).to.be.instanceOf(InstanceGone);
    expect(await rejection(exec(id, 'agent'))).to.be.instanceOf(InstanceGone);

    await pods.driver.release(id, { reason: 'exited', exitCode: 7 });
    await shows(
      id,
      (fact) => fact.vitals.kind === 'gone' && !fact.vitals.remains,
      'nothing of it is left',
    );
    const last = pods.log.of(id).at(-1);
    expect(last?.record?.end).to.deep.equal({ reason: 'exited', exitCode: 7 });
    expect(last?.vitals).to.include({ kind: 'gone', exitCode: 7 });
  });
});
