import { spawnSync } from 'node:child_process';
import type { TerminalConnection, TerminalEnd } from '../client/terminal-connection.ts';
import { type CliContext, say } from '../common/context.ts';
import { CliFailure } from '../common/failure.ts';
import { OutputAfterMark } from '../common/typed-command.ts';

export const OUT_OF_MEMORY = 'the command was killed: the sandbox ran out of memory';

const DEFAULT_SIZE = { cols: 80, rows: 24 };
const MAX_SIDE = 1_000;
const END_OF_INPUT = '\x04';
const REPEAT_END_MS = 500;
/** For a typed command to begin; then all output is shown. */
const MARK_WITHIN_MS = 10_000;

export const terminalSize = ({
  stdout,
}: CliContext): { readonly cols: number; readonly rows: number } => ({
  cols: side(stdout.columns, DEFAULT_SIZE.cols),
  rows: side(stdout.rows, DEFAULT_SIZE.rows),
});

/**
 * Resolves with the exit code. Always restores the local terminal from raw mode. With `typed`,
 * sends that line and hides output before the command's own. If aborted, hangs up and rejects with
 * the reason.
 */
export const interact = async (
  terminal: TerminalConnection,
  context: CliContext,
  { signal, typed }: { readonly signal: AbortSignal; readonly typed?: string },
): Promise<number> => {
  const modes = new TerminalModes();
  const leave = enterRawMode(context);
  const detachInput = attachInput(terminal, context);
  const detachOutput = attachOutput(terminal, context, { modes, hide: typed !== undefined });
  const resize = (): void => {
    const { cols, rows } = terminalSize(context);
    terminal.resize(cols, rows);
  };
  const hangUp = (): void => terminal.close();
  context.stdout.on('resize', resize);
  signal.addEventListener('abort', hangUp, { once: true });
  if (signal.aborted) hangUp();
  let outOfMemory = false;
  try {
    if (typed !== undefined) terminal.stream.write(typed);
    const end = await terminal.ended;
    await detachOutput();
    signal.throwIfAborted();
    outOfMemory = end.oomKilled ?? false;
    return exitCodeOf(end);
  } finally {
    signal.removeEventListener('abort', hangUp);
    context.stdout.off('resize', resize);
    detachInput();
    terminal.close();
    if (context.stdout.isTTY) context.stdout.write(modes.undo());
    leave();
    if (outOfMemory) await say(context, OUT_OF_MEMORY); // after the terminal has been restored
  }
};

/** Also after an uncaught error. */
const enterRawMode = ({ stdin }: CliContext): (() => void) => {
  if (!stdin.isTTY || !stdin.setRawMode) return () => {};
  const leave = (): void => {
    stdin.setRawMode?.(false);
  };
  const enter = (): void => {
    leave(); // or Node believes that the terminal is raw already, and does nothing
    stdin.setRawMode?.(true);
    // Node's raw mode still expands line feeds, which garbles full-screen programs.
    spawnSync('stty', ['-opost'], { stdio: ['inherit', 'ignore', 'ignore'] });
  };
  enter();
  process.on('exit', leave);
  process.on('SIGCONT', enter); // the shell may have reset the terminal
  return () => {
    process.off('exit', leave);
    process.off('SIGCONT', enter);
    leave();
  };
};

const attachInput = ({ stream }: TerminalConnection, { stdin }: CliContext): (() => void) => {
  const onData = (chunk: Buffer): void => {
    if (stream.writable && !stream.write(chunk)) stdin.pause();
  };
  const onDrain = (): void => {
    stdin.resume();
  };
  let ending: NodeJS.Timeout | undefined;
  const onEnd = (): void => {
    const say = (): void => {
      if (stream.writable) stream.write(END_OF_INPUT);
    };
    say();
    // a signal that arrives before the shell is ready is lost
    ending ??= setInterval(say, REPEAT_END_MS);
  };
  stdin.on('data', onData).on('end', onEnd);
  stream.on('drain', onDrain);
  return () => {
    clearInterval(ending);
    stdin.off('data', onData).off('end', onEnd).pause();
    stream.off('drain', onDrain);
  };
};

const attachOutput = (
  { stream }: TerminalConnection,
  { stdout }: CliContext,
  { modes, hide }: { readonly modes: TerminalModes; readonly hide: boolean },
): (() => Promise<void>) => {
  const after = hide ? new OutputAfterMark() : undefined;
  const show = (bytes: Buffer): void => {
    if (bytes.length === 0) return;
    modes.follow(bytes);
    if (stdout.write(bytes)) return;
    stream.pause();
    stdout.once('drain', () => stream.resume());
  };
  const giveUp = after && setTimeout(() => show(after.flush()), MARK_WITHIN_MS);
  const finished = new Promise<void>((resolve) => {
    stream
      .once('end', () => resolve())
      .once('close', () => resolve())
      .once('error', () => resolve());
    stdout.once('error', () => resolve()).once('close', () => resolve()); // the reader has left
  });
  stream.on('data', (chunk: Buffer) => show(after ? after.feed(chunk) : chunk));
  return async () => {
    await finished;
    clearTimeout(giveUp);
    if (after) show(after.flush());
  };
};

const exitCodeOf = ({ exitCode, code, reason }: TerminalEnd): number => {
  if (exitCode !== undefined) return exitCode;
  throw new CliFailure(`the terminal ended: ${ENDS[code] ?? (reason || `close code ${code}`)}`);
};

const ENDS: Readonly<Record<number, string>> = {
  1006: 'the connection to the daemon broke',
  1012: 'the daemon is stopping',
  4001: 'the key was revoked',
  4004: 'the sandbox ended',
  4008: 'its output was not read for a minute',
};

const side = (given: number | undefined, otherwise: number): number =>
  given === undefined || given < 1 ? otherwise : Math.min(given, MAX_SIDE);

/**
 * Modes that programs must switch off: cursor keys, mouse, paste, alternate screen, hidden cursor.
 */
const TRACKED = /\x1b\[\?(1|25|47|1000|1002|1003|1004|1005|1006|1015|1047|1049|2004)([hl])/g;
const LONGEST = 8;

class TerminalModes {
  readonly #switched = new Map<string, 'h' | 'l'>();
  #tail = '';

  follow(chunk: Buffer): void {
    const text = this.#tail + chunk.toString('latin1');
    for (const [, mode = '', way] of text.matchAll(TRACKED)) {
      const usual = mode === '25' ? 'h' : 'l';
      if (way === usual) this.#switched.delete(mode);
      else this.#switched.set(mode, usual);
    }
    this.#tail = text.slice(-LONGEST);
  }

  undo(): string {
    return [...this.#switched].map(([mode, way]) => `\x1b[?${mode}${way}`).join('');
  }
}
