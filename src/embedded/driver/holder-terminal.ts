import { Duplex } from 'node:stream';
import type { ProcessDriver, StartedReading } from '../../contracts/processes.ts';
import type { Terminal } from '../../contracts/sandbox-driver.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import { INPUT_BYTES, PROCESS_SIGNALS, type ProcessFact } from '../../model/process.ts';

export interface HolderTerminalDeps {
  readonly processes: Pick<ProcessDriver, 'write' | 'resize' | 'signal'>;
  /**
   * A command that still runs after 500 ms is killed. Resolves when its group has ended, 5 s after
   * the command at the latest.
   */
  readonly hangUp: () => Promise<void>;
  readonly id: InstanceId;
  readonly reading: StartedReading;
}

const BUFFER = 64 << 10;

/**
 * The daemon's end of a terminal; its close hangs up. A reader that stalls stops the terminal, and
 * a terminal that reads no input stops the writer. `exit` settles after the last output.
 */
export class HolderTerminal implements Terminal {
  readonly stream: Duplex;
  readonly exit: Promise<number | null>;
  readonly #deps: HolderTerminalDeps;
  readonly #left = new AbortController();
  #isReading = false;
  #end: ProcessFact | undefined;
  #settle: (exitCode: number | null) => void = () => {};

  constructor(deps: HolderTerminalDeps) {
    this.#deps = deps;
    this.exit = new Promise((resolve) => {
      this.#settle = resolve;
    });
    const output = deps.reading.output(this.#left.signal)[Symbol.asyncIterator]();
    this.stream = new Duplex({
      readableHighWaterMark: BUFFER,
      writableHighWaterMark: BUFFER,
      allowHalfOpen: false,
      read: () => void this.#read(output),
      write: (chunk: Buffer, _encoding, done) => void this.#write(chunk, done),
      destroy: (_error, done) => {
        this.#hangUp();
        done(null);
      },
    });
    this.stream.once('end', () => this.#settle(this.#end?.exitCode ?? null));
  }

  get outOfMemory(): boolean {
    return this.#end?.outOfMemory ?? false;
  }

  resize(cols: number, rows: number): void {
    if (![cols, rows].every((each) => Number.isInteger(each) && each > 0 && each < 1 << 16)) return;
    this.#quietly(this.#deps.processes.resize(...this.#place, { cols, rows }));
  }

  signal(name: string): void {
    const known = PROCESS_SIGNALS.find((each) => each === name);
    if (known) this.#quietly(this.#deps.processes.signal(...this.#place, known));
  }

  close(): void {
    this.stream.destroy();
  }

  get #place(): readonly [id: InstanceId, processId: string] {
    return [this.#deps.id, this.#deps.reading.fact.processId];
  }

  async #read(output: AsyncIterator<Output>): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      for (let wants = true; wants;) {
        const next = await output.next();
        if (next.done === true) return;
        if (next.value.kind === 'end') this.#end = next.value.fact;
        if (next.value.kind === 'end') return void this.stream.push(null);
        if (next.value.kind === 'bytes') wants = this.stream.push(next.value.bytes);
      }
    } catch {
      this.stream.destroy(); // the holder is gone
    } finally {
      this.#isReading = false;
    }
  }

  async #write(chunk: Buffer, done: () => void): Promise<void> {
    const { signal } = this.#left;
    try {
      for (let at = 0; at < chunk.length; at += INPUT_BYTES)
        await this.#deps.processes.write(...this.#place, {
          bytes: chunk.subarray(at, at + INPUT_BYTES),
          signal,
        });
    } catch {
      // The shell has ended, or the terminal was hung up.
    }
    done();
  }

  #hangUp(): void {
    this.#left.abort(new Error('the terminal is closed'));
    this.#deps.reading.leave();
    if (this.#end) return this.#settle(this.#end.exitCode ?? null);
    const hungUp = this.#deps.hangUp();
    const settle = (): void => this.#settle(null);
    hungUp.then(settle, settle);
  }

  /** It may come too late. */
  #quietly(call: Promise<void>): void {
    call.catch(() => {});
  }
}

type Output =
  ReturnType<StartedReading['output']> extends AsyncIterable<infer Piece> ? Piece : never;
