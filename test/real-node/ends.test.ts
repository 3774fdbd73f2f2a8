import { expect } from 'chai';
import {
  ContainerGone,
  InstanceGone,
  NotJoinable,
  OutcomeUnknown,
  type ExecOutcome,
} from '../../src/contracts/sandbox-driver.ts';
import type { LaunchOrder, InstanceFact } from '../../src/model/sandbox.ts';
import { realNodeImage } from '../../local-cluster/real-node.ts';
import type { PodDriver } from '../support/cluster/a-pod-driver.ts';
import { eventually, NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { aContainer } from '../support/builders/instance-orders.ts';
import { onRealPods, realOrder } from '../support/cluster/real-pods.ts';
import { onTheRealNode } from '../support/cluster/shared-cluster.ts';
import { rejection } from '../support/harness/rejection.ts';

describe('ends of sandboxes on a real node', function () {
  const cluster = onTheRealNode();
  const onPods = onRealPods(cluster);
  let pods: PodDriver;
  before(() => {
    pods = onPods();
  });

  const shows = (id: string, isSo: (fact: InstanceFact) => boolean, what: string): Promise<void> =>
    eventually(() => pods.log.of(id).some(isSo), what);
  const exec = (id: string, script: string, container?: string): Promise<ExecOutcome> =>
    pods.driver.exec(
      id,
      { argv: ['sh', '-c', script], timeoutMs: NEVER_COMES_MS, outputLimit: 1_000, container },
      new AbortController().signal,
    );
  const sleeps = async (id: string, seconds: number): Promise<boolean> =>
    String((await exec(id, 'cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" " "')).stdout).includes(
      `sleep ${seconds} `,
    );

  /**
   * Two containers, of which the first is not the first by name; each ends with 7 once it is told
   * to.
   */
  const two = (): LaunchOrder => {
    const containers = ['web', 'agent'].map((name) =>
      aContainer({
        name,
        image: realNodeImage('busybox'),
        workingDir: '/tmp',
        memoryBytes: 64 * 2 ** 20,
        requests: { cpuCores: 0.01, memoryBytes: 2 ** 20 },
        given: { command: ['sh', '-c', 'until [ -e /tmp/end ]; do sleep 0.1; done; exit 7'] },
      }),
    );
    const { record, definition } = realOrder(pods, {}, { definition: { containers } });
    return {
      record: { ...record, containerImages: { web: 'busybox', agent: 'busybox' } },
      definition,
    };
  };

  /** Tells one to end; it may, before that is answered. */
  const endOf = (id: string, container: string): Promise<unknown> =>
    exec(id, 'touch /tmp/end', container).catch(() => undefined);

  it('come with the first container, and not with another', async () => {
    const { id } = await pods.claimed(two());
    await endOf(id, 'agent');
    await shows(
      id,
      ({ vitals }) =>
        'endedContainers' in vitals && vitals.endedContainers?.['agent'] === 'exit code 7',
      'its end is told',
    );
    expect(await rejection(exec(id, 'true', 'agent'))).to.be.instanceOf(ContainerGone);
    await endOf(id, 'web');
    expect((await pods.log.when(id, 'gone')).vitals).to.include({ kind: 'gone', exitCode: 7 });
    expect(await rejection(exec(id, 'true'))).to.be.instanceOf(InstanceGone);
  });

  it('come with the first container even if another still runs, which is stopped then', async () => {
    const { id } = await pods.claimed(two());
    await endOf(id, 'web');
    expect((await pods.log.when(id, 'gone')).vitals).to.include({
      kind: 'gone',
      exitCode: 7,
      remains: true,
    });
    await pods.driver.release(id, { reason: 'exited', exitCode: 7 });
    await shows(id, ({ vitals }) => vitals.kind === 'gone' && !vitals.remains, 'nothing is left');
  });

  it('are reported as out of memory, without an unavailable state before', async () => {
    const greedy = ['sh', '-c', 'until [ -e /tmp/eat ]; do sleep 0.1; done; exec tail /dev/zero'];
    const { id } = await pods.claimed(
      realOrder(pods, { memoryBytes: 32 * 2 ** 20, given: { command: greedy } }),
    );
    await exec(id, 'touch /tmp/eat').catch(() => undefined); // it may end before it is answered
    const { vitals } = await pods.log.when(id, 'gone');
    expect(vitals).to.include({ kind: 'gone', exitCode: 137, outOfMemory: true });
    expect(pods.log.kinds(id)).to.not.include('unavailable');
  });

  it('are never reported during a restart of the kubelet, and an interrupted command is killed', async () => {
    const { id } = await pods.claimed(realOrder(pods));
    const { realNode } = cluster();
    const running = rejection(exec(id, 'sleep 987'));
    await eventually(() => sleeps(id, 987), 'it runs');
    await realNode.kill('kubelet');
    expect(await running).to.be.instanceOf(OutcomeUnknown);
    await realNode.begin('kubelet');

    const failures: unknown[] = [];
    await eventually(
      () =>
        exec(id, 'true').then(
          () => true,
          (error: unknown) => {
            failures.push(error);
            return false;
          },
        ),
      'commands run again',
    );

    expect(
      failures.filter(
        (error) => !(error instanceof NotJoinable || error instanceof OutcomeUnknown),
      ),
    ).to.deep.equal([]);
    expect(pods.log.kinds(id)).to.not.include('gone');
    await eventually(async () => !(await sleeps(id, 987)), 'it is ended');
  });
});
