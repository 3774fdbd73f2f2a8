import {
  ProcessRefused,
  type OutputRequest,
  type ProcessDriver,
  type ProcessOrder,
  type StartedReading,
} from '../../contracts/processes.ts';
import { NotJoinable } from '../../contracts/sandbox-driver.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { ProcessFact, ProcessId, ProcessOutput, ProcessSignal } from '../../model/process.ts';
import type { ProcessCall } from '../spawner/processes/process-messages.ts';
import type { ProcessLink } from './process-link.ts';

/** Runs processes by the spawner, to which they belong: they end with it, not with the daemon. */
export class EmbeddedProcesses implements ProcessDriver {
  readonly provided = true;
  readonly #link: () => Promise<ProcessLink>;

  /** `link` rejects where no spawner answers in time. */
  constructor(link: () => Promise<ProcessLink>) {
    this.#link = link;
  }

  async start(id: InstanceId, order: ProcessOrder): Promise<ProcessFact> {
    return theFact(await this.#call(id, startCall(order)));
  }

  /** The spawner reads in order: by the time at which it reads of the reading, it has begun. */
  async run(id: InstanceId, order: ProcessOrder, request: OutputRequest): Promise<StartedReading> {
    const call = startCall(order);
    const link = await this.#link();
    const started = link.call(id, call);
    started.catch(() => {}); // told below
    const output = link.open(id, { processId: order.processId, ...request });
    try {
      const fact = theFact(await started);
      return {
        fact,
        output: (signal) => output.read(signal),
        leave: () => output.leave(),
      };
    } catch (error) {
      output.leave();
      throw error;
    }
  }

  async list(id: InstanceId): Promise<readonly ProcessFact[]> {
    return await this.#call(id, { act: 'list' });
  }

  async find(id: InstanceId, processId: ProcessId): Promise<ProcessFact | undefined> {
    const [found] = await this.#call(id, { act: 'find', processId });
    return found;
  }

  async *output(
    id: InstanceId,
    processId: ProcessId,
    request: OutputRequest,
    signal: AbortSignal,
  ): AsyncGenerator<ProcessOutput, void, undefined> {
    yield* (await this.#link()).open(id, { processId, ...request }).read(signal);
  }

  async write(
    id: InstanceId,
    processId: ProcessId,
    bytes: Buffer,
    signal: AbortSignal,
  ): Promise<void> {
    await (await this.#link()).write(id, { processId, bytes }, signal);
  }

  async closeInput(id: InstanceId, processId: ProcessId): Promise<void> {
    await this.#call(id, { act: 'close-input', processId });
  }

  async resize(id: InstanceId, processId: ProcessId, cols: number, rows: number): Promise<void> {
    await this.#call(id, { act: 'resize', processId, cols, rows });
  }

  async signal(id: InstanceId, processId: ProcessId, name: ProcessSignal): Promise<void> {
    await this.#call(id, { act: 'signal', processId, name });
  }

  async remove(id: InstanceId, processId: ProcessId): Promise<void> {
    await this.#call(id, { act: 'remove', processId });
  }

  async #call(id: InstanceId, call: ProcessCall): Promise<readonly ProcessFact[]> {
    return await (await this.#link()).call(id, call);
  }
}

const startCall = (order: ProcessOrder): ProcessCall => {
  const { container: _one, ...start } = order;
  if (holdsNul(order)) throw new ProcessRefused('command', 'must not hold a NUL');
  return { act: 'start', order: start };
};

const theFact = ([fact]: readonly ProcessFact[]): ProcessFact => {
  if (!fact) throw new NotJoinable('the spawner told nothing of the process');
  return fact;
};

const holdsNul = ({ argv, cwd = '', env = {} }: ProcessOrder): boolean =>
  [...argv, cwd, ...Object.entries(env).flat()].some((text) => text.includes('\0'));
