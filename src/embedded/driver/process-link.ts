import type { Clock } from '../../contracts/clock.ts';
import {
  InputClosed,
  ProcessEnded,
  ProcessesFull,
  ProcessGone,
  ProcessRefused,
  type OutputRequest,
} from '../../contracts/processes.ts';
import { InstanceGone, NotJoinable, OutcomeUnknown } from '../../contracts/sandbox-driver.ts';
import type { ProcessFact, ProcessId } from '../../model/process.ts';
import { FRAME_KINDS, type Frame } from '../spawner/frames.ts';
import type {
  ProcessCall,
  ProcessRefusal,
  ProcessSpawnerMessage,
} from '../spawner/processes/process-messages.ts';
import type { DaemonMessage } from '../spawner/protocol.ts';
import { OutputChannel } from './output-channel.ts';

/** A call that was not answered by then is given up; the spawner has a deadline of its own. */
const CALL_PATIENCE_MS = 30_000;

export interface ProcessLinkDeps {
  readonly clock: Clock;
  /** For requests and channels alike. Throws where the link is over. */
  readonly number: () => number;
  readonly send: (message: DaemonMessage) => void;
  readonly input: (request: number, bytes: Buffer) => void;
}

interface Waiting {
  readonly settle: (facts: readonly ProcessFact[]) => void;
  readonly fail: (error: unknown) => void;
}

/** Carries calls and readings of processes over the link to the spawner. */
export class ProcessLink {
  readonly #deps: ProcessLinkDeps;
  readonly #calls = new Map<number, Waiting>();
  readonly #channels = new Map<number, OutputChannel>();

  constructor(deps: ProcessLinkDeps) {
    this.#deps = deps;
  }

  call(id: string, call: ProcessCall): Promise<readonly ProcessFact[]> {
    return this.#ask((request) => this.#deps.send({ type: 'process', request, id, call }));
  }

  /** Takes the input back at an abort, unless it is with the process; then it rejects. */
  async write(
    id: string,
    { processId, bytes }: { readonly processId: ProcessId; readonly bytes: Buffer },
    signal: AbortSignal,
  ): Promise<void> {
    signal.throwIfAborted();
    let callOff = (): void => undefined;
    const written = this.#ask((request) => {
      this.#deps.send({ type: 'process', request, id, call: { act: 'write', processId } });
      this.#deps.input(request, bytes);
      callOff = () => this.#deps.send({ type: 'process-call-off', request });
      signal.addEventListener('abort', callOff, { once: true });
    });
    try {
      await written;
    } catch (error) {
      throw signal.aborted ? signal.reason : error;
    } finally {
      signal.removeEventListener('abort', callOff);
    }
  }

  /** Begins to read a process; whoever opens it reads or leaves it. */
  open(
    id: string,
    { processId, from, pace }: { readonly processId: ProcessId } & OutputRequest,
  ): OutputChannel {
    const channel = this.#deps.number();
    const output = new OutputChannel({
      credit: (bytes) => this.#deps.send({ type: 'credit', channel, bytes }),
      close: () => {
        this.#channels.delete(channel);
        this.#deps.send({ type: 'close', channel });
      },
    });
    this.#channels.set(channel, output);
    this.#deps.send({ type: 'process-read', channel, id, processId, pace, from });
    return output;
  }

  /** Returns false where the frame is no process's. */
  output({ kind, channel, payload }: Frame): boolean {
    const output = this.#channels.get(channel);
    output?.output(kind === FRAME_KINDS.errors ? 'stderr' : 'stdout', payload);
    return output !== undefined;
  }

  hear(message: ProcessSpawnerMessage): void {
    switch (message.type) {
      case 'process-answer':
        return this.#calls.get(message.request)?.settle(message.facts);
      case 'process-refused':
        return this.#calls.get(message.request)?.fail(errorFor(message.refusal));
      case 'process-position':
        return this.#channels.get(message.channel)?.position(message.position);
      case 'process-dropped':
        return this.#channels.get(message.channel)?.dropped(message.bytes);
      case 'process-read-over':
        return this.#readOver(message);
    }
  }

  /** The link is over. */
  lose(error: Error): void {
    for (const { fail } of [...this.#calls.values()]) fail(error);
    for (const channel of this.#channels.values()) channel.failed(error);
    this.#channels.clear();
  }

  #ask(send: (request: number) => void): Promise<readonly ProcessFact[]> {
    return new Promise((resolve, reject) => {
      const { clock } = this.#deps;
      const request = this.#deps.number();
      const callOff = clock.at(clock.now() + CALL_PATIENCE_MS, () =>
        fail(new OutcomeUnknown('the spawner does not answer')),
      );
      const end = (): void => {
        callOff();
        this.#calls.delete(request);
      };
      const fail = (error: unknown): void => {
        end();
        reject(error);
      };
      const settle = (facts: readonly ProcessFact[]): void => {
        end();
        resolve(facts);
      };
      this.#calls.set(request, { settle, fail });
      send(request);
    });
  }

  #readOver({
    channel,
    fact,
    refusal,
  }: Extract<ProcessSpawnerMessage, { type: 'process-read-over' }>): void {
    const output = this.#channels.get(channel);
    this.#channels.delete(channel);
    if (fact) output?.ended(fact);
    else if (refusal) output?.failed(errorFor(refusal));
  }
}

const errorFor = ({ kind, message, field = 'command', of = 'machine' }: ProcessRefusal): Error => {
  switch (kind) {
    case 'instance-gone':
      return new InstanceGone(message);
    case 'not-joinable':
      return new NotJoinable(message);
    case 'gone':
      return new ProcessGone(message);
    case 'ended':
      return new ProcessEnded(message);
    case 'input-closed':
      return new InputClosed(message);
    case 'refused':
      return new ProcessRefused(field, message);
    case 'full':
      return new ProcessesFull(of, message);
  }
};
