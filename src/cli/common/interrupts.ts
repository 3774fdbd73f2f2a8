import { spawn } from 'node:child_process';
import { fstatSync } from 'node:fs';
import { constants } from 'node:os';
import type { CliContext } from './context.ts';

export class Interrupted extends Error {
  override readonly name = 'Interrupted';
  /** `SIGPIPE` if the reader of the output has left, as with `head`. */
  readonly signal: NodeJS.Signals;
  readonly exitCode: number;

  constructor(signal: NodeJS.Signals) {
    super(`ended by ${signal}`);
    this.signal = signal;
    this.exitCode = 128 + constants.signals[signal];
  }
}

export interface Interrupts {
  /** Aborts with Interrupted at the first signal. */
  readonly signal: AbortSignal;
  readonly dispose: () => void;
}

const CAUGHT = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM'] as const;

/** One event may send its signal twice: a closed terminal ends the shell, and both send it. */
const ECHO_MS = 1_000;

/**
 * The command can return its sandbox before it ends. A later second signal calls `insist` with the
 * exit code. A second hang-up does not, since a closed terminal sends two. A reader of `output`
 * that leaves counts as SIGPIPE.
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
 * While nothing is written, GNU tail polls the pipe each second, which Node cannot do, and exits
 * once the reader is gone.
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
    ?.once('error', () => {}) // without tail, the next write shows it
    .once('exit', (_code, signal) => {
      if (signal === 'SIGPIPE') left();
    });
  return () => {
    output.off('error', left);
    watcher?.kill();
  };
};
