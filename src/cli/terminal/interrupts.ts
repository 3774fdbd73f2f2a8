import type { Writable } from 'node:stream';

/** Thrown where a signal told the command to end. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
  /** 128 and the signal's number, as shells have it. */
  readonly exitCode: number;
  /** No signal came: whoever read the output has left, as `head` does. */
  readonly isOfReader: boolean;

  constructor(signal: string) {
    super(`ended by ${signal}`);
    this.exitCode = 128 + (signal === PIPE ? PIPE_NUMBER : (SIGNALS[signal] ?? 0));
    this.isOfReader = signal === PIPE;
  }
}

export interface Interrupts {
  /** Aborts with Interrupted as its reason at the first signal. */
  readonly signal: AbortSignal;
  readonly dispose: () => void;
}

const SIGNALS: Readonly<Record<string, number>> = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGTERM: 15 };
const PIPE = 'SIGPIPE';
const PIPE_NUMBER = 13;

/**
 * One cause often sends its signal twice: a shell that ends, and the terminal that goes with it.
 */
const ECHO_MS = 1_000;

/**
 * Catches the signals that would end this process, so that what was borrowed is given back. One
 * more, later than an echo of the first, calls `insist` with the exit code: whoever sent it does
 * not want to wait. A hang-up does not: a terminal that the user closes sends it twice, by its
 * shell and by the kernel, and nobody is left who waits. A reader of `output` that has left counts
 * as SIGPIPE.
 */
export const catchInterrupts = (
  insist: (exitCode: number) => void,
  output?: Writable,
): Interrupts => {
  const abort = new AbortController();
  let firstAt = 0;
  const caught = (name: NodeJS.Signals): void => {
    const interrupted = new Interrupted(name);
    if (!abort.signal.aborted) {
      firstAt = performance.now();
      abort.abort(interrupted);
    } else if (name !== 'SIGHUP' && performance.now() - firstAt > ECHO_MS) {
      insist(interrupted.exitCode);
    }
  };
  const names = Object.keys(SIGNALS) as NodeJS.Signals[]; // the table's own names
  for (const name of names) process.on(name, caught);
  const left = (): void => abort.abort(new Interrupted(PIPE));
  output?.once('error', left);
  return {
    signal: abort.signal,
    dispose: () => {
      for (const name of names) process.off(name, caught);
      output?.off('error', left);
    },
  };
};
