import type { SpawnerMessage } from '../protocol.ts';
import { publicMessage } from '../public-message.ts';
import { OutputReader } from './output-reader.ts';
import type { OutputStream } from './output-ring.ts';
import type { Processes } from './processes.ts';
import {
  CallRefused,
  type ProcessCall,
  type ProcessDaemonMessage,
  type ProcessRefusal,
} from './process-messages.ts';
import type { ProcessFact } from '../../../model/process.ts';

/** Readings at a time of one connection, so that nothing here grows without end. */
const MOST_READERS = 4_096;

export interface DeskLink {
  send(message: SpawnerMessage): void;
  /** Returns false while the daemon reads too slowly. */
  output(stream: OutputStream, channel: number, bytes: Buffer): boolean;
}

interface PendingWrite {
  readonly id: string;
  readonly processId: string;
}

/** Answers one daemon's calls about processes while it is connected. They outlive it. */
export class ProcessDesk {
  readonly #processes: Processes;
  readonly #link: DeskLink;
  readonly #readers = new Map<number, OutputReader>();
  /** Announced writes, whose input is the next frame. */
  readonly #announced = new Map<number, PendingWrite>();
  readonly #writing = new Map<number, AbortController>();

  constructor(processes: Processes, link: DeskLink) {
    this.#processes = processes;
    this.#link = link;
  }

  obey(message: ProcessDaemonMessage): void {
    if (message.type === 'process-read') return this.#read(message);
    if (message.type === 'process-call-off') return this.#writing.get(message.request)?.abort();
    const { request, id, call } = message;
    if (call.act === 'write')
      return void this.#announced.set(request, { id, processId: call.processId });
    this.#answer(request, () => this.#carryOut(id, call));
  }

  /** Returns false where the frame is nothing announced. */
  input(request: number, bytes: Buffer): boolean {
    const write = this.#announced.get(request);
    if (!write) return false;
    this.#announced.delete(request);
    const controller = new AbortController();
    this.#writing.set(request, controller);
    this.#answer(request, async () => {
      await this.#processes.get(write.id, write.processId).write(bytes, controller.signal);
      return [];
    });
    return true;
  }

  credit(channel: number, bytes: number): void {
    this.#readers.get(channel)?.credit(bytes);
  }

  close(channel: number): void {
    this.#readers.get(channel)?.close();
    this.#readers.delete(channel);
  }

  /** The daemon reads again. */
  drained(): void {
    for (const reader of this.#readers.values()) reader.resume();
  }

  closeAll(): void {
    for (const reader of this.#readers.values()) reader.close();
    this.#readers.clear();
    this.#announced.clear();
    for (const controller of this.#writing.values()) controller.abort();
    this.#writing.clear();
  }

  #answer(
    request: number,
    work: () => readonly ProcessFact[] | Promise<readonly ProcessFact[]>,
  ): void {
    const answered = async (): Promise<void> => {
      try {
        const facts = await work();
        this.#link.send({ type: 'process-answer', request, facts });
      } catch (error) {
        this.#link.send({ type: 'process-refused', request, refusal: refusalFor(error) });
      } finally {
        this.#writing.delete(request);
      }
    };
    void answered();
  }

  async #carryOut(
    id: string,
    call: Exclude<ProcessCall, { act: 'write' }>,
  ): Promise<readonly ProcessFact[]> {
    const processes = this.#processes;
    switch (call.act) {
      case 'start':
        return [await processes.start(id, call.order)];
      case 'list':
        return processes.list(id);
      case 'find': {
        const found = processes.find(id, call.processId);
        return found ? [found.fact] : [];
      }
      case 'close-input':
        processes.get(id, call.processId).closeInput();
        return [];
      case 'resize':
        processes.get(id, call.processId).resize(call.cols, call.rows);
        return [];
      case 'signal':
        processes.get(id, call.processId).signal(call.name);
        return [];
      case 'remove':
        await processes.remove(id, call.processId);
        return [];
    }
  }

  #read(message: Extract<ProcessDaemonMessage, { type: 'process-read' }>): void {
    const { channel, id, processId, from, pace } = message;
    const over = (more: { fact?: ProcessFact; refusal?: ProcessRefusal }): void => {
      this.#readers.delete(channel);
      this.#link.send({ type: 'process-read-over', channel, ...more });
    };
    try {
      if (this.#readers.size >= MOST_READERS)
        throw new CallRefused({ kind: 'not-joinable', message: 'too many readings are open' });
      const process = this.#processes.get(id, processId);
      const reader = new OutputReader(
        process,
        { from, pace },
        {
          output: (stream, bytes) => this.#link.output(stream, channel, bytes),
          position: (position) => this.#link.send({ type: 'process-position', channel, position }),
          dropped: (bytes) => this.#link.send({ type: 'process-dropped', channel, bytes }),
          ended: () => over({ fact: process.fact }),
          lost: (refusal) => over({ refusal }),
        },
      );
      this.#readers.set(channel, reader);
      process.join(reader);
    } catch (error) {
      over({ refusal: refusalFor(error) });
    }
  }
}

const refusalFor = (error: unknown): ProcessRefusal =>
  error instanceof CallRefused
    ? error.refusal
    : { kind: 'not-joinable', message: publicMessage(error) };
