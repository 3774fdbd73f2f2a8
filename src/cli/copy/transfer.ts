import { ApiError } from '../client/api-error.ts';
import { type CliContext, say } from '../common/context.ts';
import { CliFailure, explain } from '../common/failure.ts';
import { Interrupted } from '../common/interrupts.ts';
import type { LeftOut } from './left-out.ts';
import { byteProgress, type Progress } from '../terminal/progress.ts';

/** Smaller copies finish before anybody could read a progress line. */
const SHOWN_FROM_BYTES = 1_000_000;
const BAR_WIDTH = 24;

export interface Copy {
  readonly context: CliContext;
  readonly progress: Progress;
  readonly leftOut: LeftOut;
}

export interface TransferTerms extends Pick<Copy, 'context' | 'progress'> {
  readonly name: string;
  /** If known in advance. */
  readonly size: number | undefined;
  /** The target's state after a failure; `whole`: all bytes were sent. */
  readonly after: (whole: boolean) => string;
}

/** Shows progress, and reports at which byte a copy failed. */
export class Transfer {
  readonly #terms: TransferTerms;
  #done = 0;
  #whole = false;

  constructor(terms: TransferTerms) {
    this.#terms = terms;
  }

  async *through(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
    for await (const piece of bytes) {
      yield piece;
      this.#done += piece.length;
      this.#show();
    }
    this.#whole = true;
  }

  /** An error says how much was copied, the target's state, and that the copy cannot be resumed. */
  async run<T>(copy: () => Promise<T>): Promise<T> {
    const { context, progress, after } = this.#terms;
    try {
      return await copy();
    } catch (error) {
      // An error after the last byte did not interrupt the copy.
      if (this.#done === 0 || (this.#whole && error instanceof CliFailure)) throw error;
      progress.end();
      if (error instanceof Interrupted) {
        await say(context, this.#where(), after(this.#whole), NOT_RESUMED);
        throw error;
      }
      const [message = '', ...hints] = explain(error);
      const options = { cause: error };
      if (error instanceof ApiError)
        throw new CliFailure(message, [...hints, after(false)], options);
      throw new CliFailure(
        `${this.#where()}: ${message}`,
        [...hints, after(this.#whole), NOT_RESUMED],
        options,
      );
    }
  }

  #where(): string {
    const { name, size } = this.#terms;
    return `the copy of ${name} was interrupted after ${byteProgress(this.#done, size)}`;
  }

  #show(): void {
    const { progress, name, size } = this.#terms;
    if ((size ?? this.#done) < SHOWN_FROM_BYTES) return;
    const bar = size === undefined ? '' : `  ${barOf(this.#done / size)}`;
    progress.tell(`${name}: ${byteProgress(this.#done, size)}${bar}`);
  }
}

const NOT_RESUMED = 'it cannot be resumed: copy again from the beginning';

const barOf = (part: number): string => {
  const full = Math.round(Math.min(1, part) * BAR_WIDTH);
  return `[${'#'.repeat(full)}${'-'.repeat(BAR_WIDTH - full)}]`;
};
