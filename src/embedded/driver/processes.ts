import { availableParallelism } from 'node:os';
import type { Clock } from '../../contracts/clock.ts';
import {
  ProcessesFull,
  ProcessRefused,
  type OutputRequest,
  type ProcessDriver,
  type ProcessInput,
  type ProcessOrder,
  type StartedReading,
} from '../../contracts/processes.ts';
import { NotJoinable } from '../../contracts/sandbox-driver.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { ProcessFact, ProcessId, ProcessOutput, ProcessSignal } from '../../model/process.ts';
import type { ProcessCall } from '../spawner/processes/process-messages.ts';
import { FairSlots } from '../../lib/fair-slots.ts';
import type { ProcessLink } from './process-link.ts';

export interface EmbeddedProcessesDeps {
  /** Rejects if no spawner answers in time. */
  readonly link: () => Promise<ProcessLink>;
  readonly clock: Clock;
  /** Absent: those of this machine. */
  readonly processors?: number;
}

/** Starts that may wait for their turn. */
const MOST_WAITING = 4_096;
const MOST_WAITING_OF_TENANT = 1_024;
/** A start that takes longer mostly waits, such as for the processor time of its sandbox. */
const TURN_MS = 50;

/**
 * Runs processes by the spawner, to which they belong: they end with it, not with the daemon. A
 * start takes a processor for some milliseconds, and one tenant's starts take half of the
 * processors at most, so that the daemon has time to answer others.
 */
export class EmbeddedProcesses implements ProcessDriver {
  readonly provided = true;
  readonly #link: () => Promise<ProcessLink>;
  readonly #clock: Clock;
  readonly #starts: FairSlots;

  constructor({ link, clock, processors = availableParallelism() }: EmbeddedProcessesDeps) {
    this.#link = link;
    this.#clock = clock;
    this.#starts = new FairSlots({
      most: () => 2 * processors,
      mostOfTenant: () => Math.ceil(processors / 2),
      mostWaiting: MOST_WAITING,
      mostWaitingOfTenant: MOST_WAITING_OF_TENANT,
    });
  }

  async start(id: InstanceId, order: ProcessOrder): Promise<ProcessFact> {
    const call = startCall(order);
    const release = await this.#turn(order);
    try {
      return theFact(await this.#call(id, call));
    } finally {
      release();
    }
  }

  /** The spawner reads in order: by the time at which it reads of the reading, it has begun. */
  async run(id: InstanceId, order: ProcessOrder, request: OutputRequest): Promise<StartedReading> {
    const call = startCall(order);
    const release = await this.#turn(order);
    try {
      return await this.#run(await this.#link(), id, { call, order, request });
    } finally {
      release();
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
    { signal, ...request }: OutputRequest & { readonly signal: AbortSignal },
  ): AsyncGenerator<ProcessOutput, void, undefined> {
    yield* (await this.#link()).open(id, { processId, ...request }).read(signal);
  }

  async write(
    id: InstanceId,
    processId: ProcessId,
    { bytes, signal }: ProcessInput,
  ): Promise<void> {
    await (await this.#link()).write(id, { processId, bytes }, signal);
  }

  async closeInput(id: InstanceId, processId: ProcessId): Promise<void> {
    await this.#call(id, { act: 'close-input', processId });
  }

  async resize(
    id: InstanceId,
    processId: ProcessId,
    { cols, rows }: { readonly cols: number; readonly rows: number },
  ): Promise<void> {
    await this.#call(id, { act: 'resize', processId, cols, rows });
  }

  async signal(id: InstanceId, processId: ProcessId, name: ProcessSignal): Promise<void> {
    await this.#call(id, { act: 'signal', processId, name });
  }

  async remove(id: InstanceId, processId: ProcessId): Promise<void> {
    await this.#call(id, { act: 'remove', processId });
  }

  async #run(
    link: ProcessLink,
    id: InstanceId,
    {
      call,
      order: { processId },
      request,
    }: {
      readonly call: ProcessCall;
      readonly order: ProcessOrder;
      readonly request: OutputRequest;
    },
  ): Promise<StartedReading> {
    const started = link.call(id, call);
    started.catch(() => {}); // told below
    const output = link.open(id, { processId, ...request });
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

  /** Resolves with a function that ends the turn, which ends by itself after 50 ms. */
  async #turn({ tenant }: ProcessOrder): Promise<() => void> {
    const full = () => new ProcessesFull('tenant', 'too many of your processes wait to be started');
    const release = await this.#starts.take(tenant, { full });
    const callOff = this.#clock.at(this.#clock.now() + TURN_MS, release);
    return () => {
      callOff();
      release();
    };
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
