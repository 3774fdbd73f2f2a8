import { expect } from 'chai';
import { disruptionOf, vitalsOf, type PodStatus } from '../../src/k8s/sandboxes/pods/pod-vitals.ts';

const START = '2026-01-01T00:00:00Z';
const up = { running: {} };
const over = (exitCode: number, reason = 'Error') => ({ terminated: { exitCode, reason } });
type State = typeof up | ReturnType<typeof over>;

const status = (
  phase: string,
  states: Readonly<Record<string, State>>,
  ready: 'True' | 'False' = 'False',
): PodStatus => ({
  phase,
  startTime: START,
  conditions: [{ type: 'Ready', status: ready, reason: 'ContainersNotReady' }],
  // As kubelets have it: by name, not as the spec has them.
  containerStatuses: Object.entries(states)
    .reverse()
    .map(([name, state]) => ({ name, state })),
});

const of = (given: PodStatus, containers: readonly string[] = ['web', 'agent'], endsBy?: number) =>
  vitalsOf(given, { containers, endsBy });

describe("an instance's state from the status of its Pod", () => {
  it('is gone once its only container has ended, even if the Pod still counts as running', () => {
    expect(of(status('Running', { main: over(3) }), ['main'])).to.deep.equal({
      kind: 'gone',
      exitCode: 3,
      reason: 'Error: its main process ended with exit code 3',
    });
  });

  it('is gone at the end of the first container, with its exit code, while others remain', () => {
    const gone = {
      kind: 'gone',
      exitCode: 0,
      reason: 'Completed: its main process ended with exit code 0',
    };
    expect(of(status('Running', { web: over(0, 'Completed'), agent: up }))).to.deep.equal({
      ...gone,
      remains: true,
    });
    expect(of(status('Failed', { web: over(0, 'Completed'), agent: over(9) }))).to.deep.equal(gone);
  });

  it('has the deadline of the remaining containers', () => {
    expect(of(status('Running', { web: over(0), agent: up }), ['web', 'agent'], 7)).to.deep.include(
      { remains: true, endsBy: 7 },
    );
  });

  it('survives the end of another container, and reports it', () => {
    expect(of(status('Running', { web: up, agent: over(1) }))).to.deep.equal({
      kind: 'starting',
      reason: 'its container "agent" has ended: exit code 1',
      endedContainers: { agent: 'exit code 1' },
    });
  });

  it('omits the ends of containers that end with the Pod', () => {
    expect(
      of(status('Running', { web: up, agent: over(1) }), ['web', 'agent'], 7),
    ).to.not.have.property('endedContainers');
  });

  it('distinguishes lasting obstacles to a start from temporary ones', () => {
    const waits = (reason: string) =>
      of(
        { phase: 'Pending', containerStatuses: [{ name: 'main', state: { waiting: { reason } } }] },
        ['main'],
      );
    for (const reason of [
      'ErrImagePull',
      'ImagePullBackOff',
      'InvalidImageName',
      'ErrImageNeverPull',
      'RegistryUnavailable',
    ])
      expect(waits(reason)).to.deep.equal({
        kind: 'starting',
        reason,
        hindrance: 'ImageUnavailable',
      });
    for (const reason of ['CreateContainerConfigError', 'CreateContainerError'])
      expect(waits(reason)).to.deep.equal({
        kind: 'starting',
        reason,
        hindrance: 'ContainerNotCreated',
      });
    expect(waits('ContainerCreating')).to.deep.equal({ kind: 'starting' });
    expect(
      of({
        phase: 'Pending',
        conditions: [
          {
            type: 'PodScheduled',
            status: 'False',
            reason: 'Unschedulable',
            message:
              '0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available',
          },
        ],
      }),
    ).to.deep.equal({
      kind: 'starting',
      reason: 'Unschedulable: 0/1 nodes are available: 1 Insufficient cpu.',
      hindrance: 'Unschedulable',
    });
  });

  it('explains the remedy if a kubelet probes a port without an answer', () => {
    const unready = vitalsOf(status('Running', { main: up }), {
      containers: ['main'],
      endsBy: undefined,
      isAsked: true,
    });
    expect(unready).to.have.property('advice').that.includes('listen on all addresses');
    expect(of(status('Running', { main: up }), ['main'])).to.not.have.property('advice');
  });

  it('quotes kubelet and scheduler without names of nodes or addresses', () => {
    const message = 'rpc error: code = Unknown desc = worker-7 can not reach 10.0.0.9:5000';
    const waiting: PodStatus = {
      phase: 'Pending',
      containerStatuses: [
        { name: 'main', state: { waiting: { reason: 'ErrImagePull', message } } },
      ],
    };
    expect(
      vitalsOf(waiting, { containers: ['main'], endsBy: undefined, node: 'worker-7' }),
    ).to.deep.include({ reason: 'ErrImagePull: its node can not reach an address' });
    const rejected: PodStatus = {
      phase: 'Failed',
      reason: 'OutOfcpu',
      message: 'Pod was rejected: worker-7 is full',
    };
    expect(
      vitalsOf(rejected, { containers: ['main'], endsBy: undefined, node: 'worker-7' }),
    ).to.deep.include({ reason: 'OutOfcpu: Pod was rejected: its node is full' });
    expect(disruptionOf(rejected, 'worker-7')).to.equal(
      'OutOfcpu: Pod was rejected: its node is full',
    );
  });

  it('reports lack of memory in the main process and in another container', () => {
    expect(of(status('Running', { web: over(137, 'OOMKilled') }), ['web'])).to.include({
      outOfMemory: true,
      exitCode: 137,
    });
    expect(of(status('Running', { web: up, agent: over(137, 'OOMKilled') }))).to.deep.include({
      endedContainers: { agent: 'OOMKilled, exit code 137' },
    });
    expect(
      of(status('Failed', { web: over(1), agent: over(137, 'OOMKilled') })),
    ).to.not.have.property('outOfMemory');
  });
});
