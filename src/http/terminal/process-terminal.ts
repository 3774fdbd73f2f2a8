import { Duplex } from 'node:stream';
import type { Clock } from '../../contracts/clock.ts';
import type { ProcessFact, ProcessOutput, ProcessSignal } from '../../model/process.ts';
import { Refusal } from '../../model/refusals.ts';
import type { Caller } from '../../model/tenant.ts';
import type { Operations } from '../../services/operations.ts';
import type { ProcessFollow } from '../../services/processes/process-operations.ts';
import type { OpenTerminal } from '../../actors/sandbox/commands/sandbox-operations.ts';
import type { Clients } from '../limits/clients.ts';
import { refusalOf } from '../reply/error-table.ts';
import type { ProcessAsk } from './process-request.ts';

export interface ProcessTerminalDeps {
  readonly operations: Pick<
    Operations,
    'followProcess' | 'giveInput' | 'signalProcess' | 'resizeProcess'
  >;
  readonly clock: Clock;
  readonly clients: Pick<Clients, 'followKey'>;
}

/** In bytes. With its header, a frame fits into one message. */
const PIECE = 31 << 10;
/** Waiting frames at which reading pauses. */
const AHEAD = 4;
/** Before refused input is retried. */
const AGAIN_MS = 500;
/** The first byte of a frame gives its kind. */
const KINDS = { message: 0, stdout: 1, stderr: 2 } as const;

/**
 * Opens a process as a terminal. An output frame begins with its kind, the length of the position,
 * and the position, which is empty if the piece continues in the next frame.
 */
export const openProcess = async (
  deps: ProcessTerminalDeps,
  caller: Caller,
  ask: ProcessAsk,
): Promise<OpenTerminal> => {
  const { sandboxId, processId, from, pace } = ask;
  const follow = await deps.operations.followProcess(caller, sandboxId, { processId, from, pace });
  const wire = new ProcessWire(deps, { caller, ask, follow });
  return wire.opened();
};

interface Following {
  readonly caller: Caller;
  readonly ask: ProcessAsk;
  readonly follow: ProcessFollow;
}

class ProcessWire {
  readonly #deps: ProcessTerminalDeps;
  readonly #of: Following;
  readonly #stream: Duplex;
  readonly #left = new AbortController();
  #outOfMemory = false;
  #wanted: () => void = () => {};
  #exit: (code: number | null) => void = () => {};
  #end: (why: 'sandbox-ended' | 'key-revoked') => void = () => {};

  constructor(deps: ProcessTerminalDeps, of: Following) {
    this.#deps = deps;
    this.#of = of;
    this.#stream = new Duplex({
      readableObjectMode: true,
      readableHighWaterMark: AHEAD,
      writableHighWaterMark: 1,
      read: () => {
        this.#wanted();
      },
      write: (bytes: Buffer, _encoding, done) => {
        void this.#give(bytes, done);
      },
      final: (done) => {
        void this.#give(undefined, done);
      },
    });
    this.#stream.on('error', () => undefined);
  }

  opened(): OpenTerminal {
    const { caller, ask, follow } = this.#of;
    const { operations, clients } = this.#deps;
    const exit = new Promise<number | null>((resolve) => {
      this.#exit = resolve;
    });
    const ended = new Promise<'sandbox-ended' | 'key-revoked'>((resolve) => {
      this.#end = resolve;
    });
    const forget = clients.followKey(caller, () => {
      this.#end('key-revoked');
    });
    const { sandboxId, processId } = ask;
    const close = (): void => {
      forget();
      this.#left.abort();
      this.#wanted();
      follow.close();
    };
    const hasMemoryRunOut = (): boolean => this.#outOfMemory;
    void this.#print();
    return {
      caller,
      terminal: {
        stream: this.#stream,
        resize: (cols, rows) => {
          this.#tell(operations.resizeProcess(caller, sandboxId, { processId, cols, rows }));
        },
        signal: (name) => {
          const request = { processId, name: name as ProcessSignal };
          this.#tell(operations.signalProcess(caller, sandboxId, request));
        },
        exit,
        get outOfMemory() {
          return hasMemoryRunOut();
        },
        close,
      },
      closeInput: () => {
        this.#stream.end();
      },
      touch: () => {},
      ended,
      close,
    };
  }

  async #print(): Promise<void> {
    const { signal } = this.#left;
    try {
      for await (const event of this.#of.follow.output(signal)) {
        if (event.kind === 'end') {
          this.#stream.push(null);
          this.#outOfMemory = event.fact.outOfMemory ?? false;
          return this.#exit(exitCodeOf(event.fact));
        }
        for (const frame of framesOf(event))
          if (!this.#stream.push(frame) && !signal.aborted)
            await new Promise<void>((resolve) => {
              this.#wanted = resolve;
            });
        if (signal.aborted) return;
      }
      this.#exit(null);
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal?.code.startsWith('SANDBOX_')) this.#end('sandbox-ended');
      else this.#exit(null);
    }
  }

  /** `undefined` ends the input. Retries while the process is full. */
  async #give(bytes: Buffer | undefined, done: () => void): Promise<void> {
    const { caller, ask } = this.#of;
    const { sandboxId, processId } = ask;
    const input = { processId, bytes: bytes ?? Buffer.alloc(0), last: bytes === undefined };
    while (!this.#left.signal.aborted)
      try {
        await this.#deps.operations.giveInput(caller, sandboxId, input);
        break;
      } catch (error) {
        if (!(error instanceof Refusal) || !AGAIN.has(error.code)) {
          this.#complain(error);
          break;
        }
        await this.#pause();
      }
    done();
  }

  async #pause(): Promise<void> {
    const { clock } = this.#deps;
    await new Promise<void>((resolve) => {
      clock.at(clock.now() + AGAIN_MS, resolve);
    });
  }

  #tell(done: Promise<unknown>): void {
    done.catch((error: unknown) => {
      this.#complain(error);
    });
  }

  /** Skipped while the reader is behind: complaints must not pile up. */
  #complain(error: unknown): void {
    if (this.#left.signal.aborted || this.#stream.readableEnded) return;
    if (this.#stream.readableLength >= AHEAD) return;
    const refusal = refusalOf(error);
    const told = {
      type: 'error',
      error: refusal?.message ?? 'the operation failed',
      errorCode: refusal?.code ?? 'INTERNAL',
    };
    this.#stream.push(frameOf('message', '', Buffer.from(JSON.stringify(told))));
  }
}

/** None of the input was written, and a retry may succeed. */
const AGAIN: ReadonlySet<string> = new Set(['CONFLICT', 'TOO_MANY_COMMANDS']);

const exitCodeOf = ({ exitCode }: ProcessFact): number | null => exitCode ?? null;

const framesOf = (event: Exclude<ProcessOutput, { kind: 'end' }>): readonly Buffer[] => {
  if (event.kind === 'dropped') {
    const { bytes } = event;
    const told = { type: 'dropped', bytes };
    return [frameOf('message', event.next, Buffer.from(JSON.stringify(told)))];
  }
  const frames: Buffer[] = [];
  for (let at = 0; at < event.bytes.length; at += PIECE) {
    const isLast = at + PIECE >= event.bytes.length;
    const piece = event.bytes.subarray(at, at + PIECE);
    frames.push(frameOf(event.stream, isLast ? event.next : '', piece));
  }
  return frames;
};

const frameOf = (kind: keyof typeof KINDS, next: string, bytes: Buffer): Buffer => {
  const position = Buffer.from(next.length > 255 ? '' : next, 'latin1');
  return Buffer.concat([Buffer.of(KINDS[kind], position.length), position, bytes]);
};
