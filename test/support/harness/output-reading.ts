import type { ProcessFact, ProcessOutput } from '../../../src/model/process.ts';
import { NEVER_COMES_MS, waitedFor } from './eventually.ts';

/** Shown in errors. */
const SEEN_LENGTH = 200;

/** Keeps all output of a process. */
export class OutputReading {
  readonly #controller = new AbortController();
  readonly #seen: ProcessOutput[] = [];
  readonly #reading: Promise<void>;
  readonly #changed = new Set<() => void>();
  #gate: Promise<void> | undefined;
  #open: () => void = () => undefined;
  #stopAt = Number.POSITIVE_INFINITY;
  #failure: Error | undefined;
  #isOver = false;

  constructor(output: (signal: AbortSignal) => AsyncIterable<ProcessOutput>) {
    this.#reading = this.#read(output(this.#controller.signal));
  }

  get size(): number {
    return this.#sum('bytes', (each) => (each.kind === 'bytes' ? each.bytes.length : 0));
  }

  get dropped(): number {
    return this.#sum('dropped', (each) => (each.kind === 'dropped' ? (each.bytes ?? 0) : 0));
  }

  text(stream: 'stdout' | 'stderr'): string {
    return Buffer.concat(
      this.#seen.flatMap((each) =>
        each.kind === 'bytes' && each.stream === stream ? [each.bytes] : [],
      ),
    ).toString();
  }

  positions(): readonly string[] {
    return this.#seen.map(({ next }) => next);
  }

  /** Resolves once standard output ends with `tail`. */
  async until(tail: string): Promise<void> {
    await this.#when(() => this.text('stdout').endsWith(tail), `it printed ${tail}`);
  }

  /** Reads this many pieces, then pauses until `goOn`. */
  async pauseAfter(pieces: number): Promise<void> {
    this.#stopAt = this.#seen.length + pieces;
    await this.#when(() => this.#gate !== undefined, 'it reads no more');
  }

  goOn(): void {
    this.#stopAt = Number.POSITIVE_INFINITY;
    this.#gate = undefined;
    this.#open();
  }

  /** Rejects with the reading's error. */
  async end(): Promise<ProcessFact> {
    await this.#when(() => this.#isOver, 'its output ends');
    if (this.#failure) throw this.#failure;
    const last = this.#seen.at(-1);
    if (last?.kind !== 'end') throw new Error('the output ended without an end');
    return last.fact;
  }

  async leave(): Promise<void> {
    this.#controller.abort();
    this.goOn();
    await this.#reading;
  }

  async #read(output: AsyncIterable<ProcessOutput>): Promise<void> {
    try {
      for await (const each of output) {
        this.#seen.push(each);
        if (this.#seen.length >= this.#stopAt)
          this.#gate = new Promise((resolve) => {
            this.#open = resolve;
          });
        this.#tell();
        await this.#gate;
      }
    } catch (error) {
      this.#failure = error instanceof Error ? error : new Error(String(error));
    } finally {
      this.#isOver = true;
      this.#tell();
    }
  }

  #tell(): void {
    for (const changed of [...this.#changed]) changed();
  }

  #when(is: () => boolean, what: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        if (!is() && !this.#isOver) return;
        clearTimeout(timer);
        this.#changed.delete(look);
        if (is()) resolve();
        else
          reject(new Error(`ended; ${waitedFor(what, this.text('stdout').slice(-SEEN_LENGTH))}`));
      };
      const timer = setTimeout(() => {
        this.#changed.delete(look);
        reject(new Error(waitedFor(what, this.text('stdout').slice(-SEEN_LENGTH))));
      }, NEVER_COMES_MS);
      this.#changed.add(look);
      look();
    });
  }

  #sum(kind: ProcessOutput['kind'], of: (each: ProcessOutput) => number): number {
    return this.#seen.filter((each) => each.kind === kind).reduce((all, each) => all + of(each), 0);
  }
}
