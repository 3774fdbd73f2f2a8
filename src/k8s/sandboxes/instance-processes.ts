import type { Clock } from '../../contracts/clock.ts';
import { InstanceGone } from '../../contracts/sandbox-driver.ts';
import {
  ProcessRefused,
  startThenRead,
  type OutputRequest,
  type ProcessDriver,
  type ProcessOrder,
  type StartedReading,
} from '../../contracts/processes.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { ProcessFact, ProcessId, ProcessOutput, ProcessSignal } from '../../model/process.ts';
import type { PodProcesses } from '../processes/pod-processes.ts';
import type { PodTarget } from './pods/pod-presence.ts';

export interface InstanceProcessesDeps {
  /** As `InstanceAccess.enterAny`. */
  readonly enter: <T>(
    id: InstanceId,
    way: (containers: readonly PodTarget[]) => Promise<T>,
  ) => Promise<T>;
  readonly processes: Pick<PodProcesses, keyof PodProcesses>;
  readonly clock: Pick<Clock, 'now'>;
}

/** The processes in the Pods of instances. */
export class InstanceProcesses implements ProcessDriver {
  readonly provided = true;
  readonly #deps: InstanceProcessesDeps;

  constructor(deps: InstanceProcessesDeps) {
    this.#deps = deps;
  }

  async start(id: InstanceId, order: ProcessOrder): Promise<ProcessFact> {
    requireWithoutNul(order);
    return await this.#enter(id, (pod) => {
      if (order.container !== undefined && !pod.some((each) => each.container === order.container))
        throw new ProcessRefused('container', `there is no container "${order.container}"`);
      return this.#deps.processes.start(pod, order, this.#deps.clock.now());
    });
  }

  run(id: InstanceId, order: ProcessOrder, request: OutputRequest): Promise<StartedReading> {
    return startThenRead(this, id, { order, request });
  }

  list(id: InstanceId): Promise<readonly ProcessFact[]> {
    return this.#enter(id, (pod) => this.#deps.processes.list(pod));
  }

  find(id: InstanceId, processId: ProcessId): Promise<ProcessFact | undefined> {
    return this.#enter(id, (pod) => this.#deps.processes.find(pod, processId));
  }

  async *output(
    id: InstanceId,
    processId: ProcessId,
    request: OutputRequest,
    signal: AbortSignal,
  ): AsyncGenerator<ProcessOutput, void, undefined> {
    let pod: readonly PodTarget[] = [];
    await this.#enter(id, (containers) => {
      pod = containers;
      return Promise.resolve();
    });
    yield* this.#deps.processes.output(pod, processId, { ...request, signal });
  }

  write(id: InstanceId, processId: ProcessId, bytes: Buffer, signal: AbortSignal): Promise<void> {
    return this.#enter(id, (pod) => this.#deps.processes.write(pod, processId, bytes, signal));
  }

  closeInput(id: InstanceId, processId: ProcessId): Promise<void> {
    return this.#enter(id, (pod) => this.#deps.processes.closeInput(pod, processId));
  }

  resize(id: InstanceId, processId: ProcessId, cols: number, rows: number): Promise<void> {
    return this.#enter(id, (pod) => this.#deps.processes.resize(pod, processId, { cols, rows }));
  }

  signal(id: InstanceId, processId: ProcessId, name: ProcessSignal): Promise<void> {
    return this.#enter(id, (pod) => this.#deps.processes.signal(pod, processId, name));
  }

  remove(id: InstanceId, processId: ProcessId): Promise<void> {
    return this.#enter(id, (pod) => this.#deps.processes.remove(pod, processId));
  }

  #enter<T>(id: InstanceId, way: (pod: readonly PodTarget[]) => Promise<T>): Promise<T> {
    return this.#deps.enter(id, async (pod) => {
      if (pod.length === 0) throw new InstanceGone('its Pod is gone');
      return await way(pod);
    });
  }
}

const requireWithoutNul = ({ argv, cwd, env }: ProcessOrder): void => {
  const has = (texts: readonly string[]): boolean => texts.some((text) => text.includes('\0'));
  if (has(argv)) throw new ProcessRefused('command', 'an argument holds a NUL');
  if (has([cwd ?? ''])) throw new ProcessRefused('cwd', 'the folder holds a NUL');
  if (has(Object.entries(env ?? {}).flat())) throw new ProcessRefused('env', 'it holds a NUL');
};
