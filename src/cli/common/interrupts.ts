import { spawn } from 'node:child_process';
import { fstatSync } from 'node:fs';
import { constants } from 'node:os';
import type { CliContext } from './context.ts';

/** Thrown where a signal told the command to end. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
  /** `SIGPIPE` if the reader of the output has left, as `head` does. */
  readonly signal: NodeJS.Signals;
  /** 128 and the signal's number, as shells have it. */
  readonly exitCode: number;

  constructor(signal: NodeJS.Signals) {
    super(`ended by ${signal}`);
    this.signal = signal;
    this.exitCode = 128 + constants.signals[signal];
  }
}

export interface Interrupts {
  /** Aborts with Interrupted as its reason at the first signal. */
  readonly signal: AbortSignal;
  readonly dispose: () => void;
}

const CAUGHT = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM'] as const;

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
  output?: CliContext['stdout'],
): Interrupts => {
  const abort = new AbortController();
  let firstAt = 0;
  const caught = (name: NodeJS.Signals): void => {
    const interrupted = new Interrupted(name);
    if (!abort.signal.aborted) {
      firstAt = performance.now();
      abort.abort(interrupted);
    } else if (INSISTS.has(name) && performance.now() - firstAt > ECHO_MS) {
      insist(interrupted.exitCode);
    }
  };
  for (const name of CAUGHT) process.on(name, caught);
  const unwatch = output && watchReader(output, () => caught('SIGPIPE'));
  return {
    signal: abort.signal,
    dispose: () => {
      for (const name of CAUGHT) process.off(name, caught);
      unwatch?.();
    },
  };
};

const INSISTS: ReadonlySet<NodeJS.Signals> = new Set(['SIGINT', 'SIGQUIT', 'SIGTERM']);

/**
 * Calls `left` once nobody reads `output` any more. A write shows it. While nothing is written, GNU
 * tail looks at the pipe each second, which Node can not, and dies of it.
 */
const watchReader = (output: CliContext['stdout'], left: () => void): (() => void) => {
  output.once('error', left);
  const { fd } = output;
  const watcher =
    fd !== undefined && fstatSync(fd).isFIFO()
      ? spawn('tail', ['-f', `--pid=${process.pid}`, '/dev/null'], {
          stdio: ['ignore', fd, 'ignore'],
        })
      : undefined;
  watcher
    ?.once('error', () => {}) // there is no tail: the next write shows it
    .once('exit', (_code, signal) => {
      if (signal === 'SIGPIPE') left();
    });
  return () => {
    output.off('error', left);
    watcher?.kill();
  };
};
