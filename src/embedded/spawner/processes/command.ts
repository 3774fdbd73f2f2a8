import type { ChildProcess } from 'node:child_process';
import type { Readable } from 'node:stream';
import { afterReading } from '../after-reading.ts';
import type { JoinPlace } from '../sandbox/join-place.ts';
import type { LauncherPool } from '../launcher-pool.ts';
import { joinOrder } from '../orders.ts';
import { Pty } from '../pty.ts';
import { environmentOf } from '../sandbox/rootfs.ts';
import type { OutputStream } from './output-ring.ts';
import type { ProcessStart } from './process-messages.ts';

export interface CommandEvents {
  output(stream: OutputStream, bytes: Buffer): void;
  /** Once the program runs or never will: what the launcher told of that. */
  started(told: string): void;
  /** Once, after the last output. */
  exited(exitCode: number): void;
}

/** Holds a process of a sandbox: its launcher and pipes, or its terminal. */
export interface Command {
  /** It has ended; what it printed before may still be read. */
  readonly hasEnded: boolean;
  pause(): void;
  resume(): void;
  /** Calls back once the process has taken it, or never will. */
  write(bytes: Buffer, done: (taken: boolean) => void): void;
  /** Not of a terminal's, which has a character for it. */
  endInput(): void;
  resize(cols: number, rows: number): void;
  /** To the launcher, as native/README.md has it. */
  signal(number: number): void;
  /** Kills the launcher itself, where it stands still. */
  destroy(): void;
}

export interface CommandDeps {
  readonly launchers: LauncherPool;
  readonly launcherPath: () => string;
}

/** From the command's end to the end of pipes that its background children hold open. */
const DRAIN_MS = 100;
/**
 * Bounds what is read of a command that has ended: more than its pipes can hold was printed by
 * others, and so is what comes after so many milliseconds in which it was read.
 */
const LAST_BYTES = 1 << 20;
const LAST_MS = 1_000;
const COULD_NOT_JOIN = 125;

const orderOf = (place: JoinPlace, start: ProcessStart): Buffer =>
  joinOrder({
    init: place.init,
    user: place.user,
    bare: place.bare,
    terminal: start.tty ? true : undefined,
    cgroups: place.cgroups,
    cwd: start.cwd ?? place.workingDir,
    env: environmentOf(place.env, start.tty ? { TERM: 'xterm-256color' } : {}, start.env ?? {}),
    argv: start.argv,
  });

/** Throws where it can't be ordered or started. */
export const beginCommand = (
  { launchers, launcherPath }: CommandDeps,
  place: JoinPlace,
  { start, events }: { readonly start: ProcessStart; readonly events: CommandEvents },
): Command => {
  const order = orderOf(place, start);
  if (!start.tty)
    return new PipedCommand(launchers.take({ withInput: start.stdin }), order, events);
  return new TerminalCommand(launcherPath(), place, { order, size: start.tty, events });
};

/** Tells what comes on the descriptor of the order until its end. */
const followStart = (child: ChildProcess, started: (told: string) => void): void => {
  const pipe = child.stdio[3];
  let told = '';
  let isOver = false;
  const over = (): void => {
    if (isOver) return;
    isOver = true;
    started(told);
  };
  if (!pipe || !('on' in pipe) || !('read' in pipe)) return over();
  pipe.on('data', (bytes: Buffer) => {
    told = (told + String(bytes)).slice(0, 256);
  });
  pipe.once('end', over);
  pipe.once('close', over);
  pipe.on('error', over);
};

class PipedCommand implements Command {
  readonly #child: ChildProcess;
  readonly #events: CommandEvents;
  #exitCode: number | undefined;
  /** Pipes that have not ended: of its start, which is told of first, and of its output. */
  #open = 3;
  #isPaused = false;
  #isOver = false;
  #stopDraining: (() => void) | undefined;
  #lastBytes = LAST_BYTES;
  #lastMs = LAST_MS;
  #readSince = 0;

  constructor(child: ChildProcess, order: Buffer, events: CommandEvents) {
    this.#child = child;
    this.#events = events;
    followStart(child, (told) => {
      events.started(told);
      this.#closed();
    });
    this.#follow(child.stdout, 'stdout');
    this.#follow(child.stderr, 'stderr');
    child.once('error', () => this.#exited(COULD_NOT_JOIN));
    child.once('exit', (code, signal) => this.#exited(code ?? (signal ? 137 : COULD_NOT_JOIN)));
    const pipe = child.stdio[3];
    if (pipe && 'end' in pipe) pipe.on('error', () => {}).end(order);
    child.stdin?.on('error', () => {});
  }

  get hasEnded(): boolean {
    return this.#exitCode !== undefined;
  }

  pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    this.#stopDraining?.();
    // A longer time passed while the spawner was stopped (SIGSTOP, a paused VM) and read nothing.
    if (this.#exitCode !== undefined)
      this.#lastMs -= Math.min(performance.now() - this.#readSince, DRAIN_MS);
    this.#child.stdout?.pause();
    this.#child.stderr?.pause();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#child.stdout?.resume();
    this.#child.stderr?.resume();
    if (this.#exitCode !== undefined) this.#awaitPipes();
  }

  write(bytes: Buffer, done: (taken: boolean) => void): void {
    const { stdin } = this.#child;
    if (!stdin || stdin.destroyed || stdin.writableEnded) return done(false);
    stdin.write(bytes, (error) => done(!error));
  }

  endInput(): void {
    this.#child.stdin?.end();
  }

  resize(): void {}

  signal(number: number): void {
    signalChild(this.#child, number);
  }

  destroy(): void {
    this.#child.kill('SIGKILL');
  }

  #follow(stream: Readable | null, name: OutputStream): void {
    stream?.on('data', (bytes: Buffer) => {
      if (this.#isOver) return;
      this.#events.output(name, bytes);
      if (this.#exitCode === undefined) return;
      this.#lastBytes -= bytes.length;
      if (this.#lastBytes < 0) this.#tell();
    });
    stream?.on('error', () => {});
    stream?.once('close', () => this.#closed());
  }

  #closed(): void {
    this.#open -= 1;
    if (this.#open === 0 && this.#exitCode !== undefined) this.#tell();
  }

  #exited(exitCode: number): void {
    if (this.#exitCode !== undefined) return;
    this.#exitCode = exitCode;
    if (this.#open === 0) this.#tell();
    else if (!this.#isPaused) this.#awaitPipes();
  }

  #awaitPipes(): void {
    this.#stopDraining?.();
    if (this.#lastMs < 0) return this.#tell();
    this.#readSince = performance.now();
    this.#stopDraining = afterReading(DRAIN_MS, () => this.#tell());
  }

  #tell(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopDraining?.();
    for (const stream of [this.#child.stdin, this.#child.stdout, this.#child.stderr])
      stream?.destroy();
    this.#events.exited(this.#exitCode ?? COULD_NOT_JOIN);
  }
}

class TerminalCommand implements Command {
  readonly #pty: Pty;
  readonly #writes: { left: number; readonly done: (taken: boolean) => void }[] = [];
  #isOver = false;

  constructor(
    launcherPath: string,
    place: JoinPlace,
    {
      order,
      size,
      events,
    }: {
      readonly order: Buffer;
      readonly size: { readonly cols: number; readonly rows: number };
      readonly events: CommandEvents;
    },
  ) {
    this.#pty = new Pty(
      {
        file: launcherPath,
        args: ['join'],
        sandbox: place.bare ? undefined : place.init,
        order,
        ...size,
      },
      {
        output: (bytes) => events.output('stdout', bytes),
        taken: (bytes) => this.#taken(bytes),
        exited: (exitCode) => {
          this.#isOver = true;
          for (const { done } of this.#writes.splice(0)) done(false);
          events.exited(exitCode);
        },
      },
    );
    followStart(this.#pty.child, (told) => events.started(told));
  }

  get hasEnded(): boolean {
    const { exitCode, signalCode } = this.#pty.child;
    return exitCode !== null || signalCode !== null;
  }

  pause(): void {
    this.#pty.pause();
  }

  resume(): void {
    this.#pty.resume();
  }

  write(bytes: Buffer, done: (taken: boolean) => void): void {
    if (this.#isOver) return done(false);
    if (bytes.length === 0) return done(true);
    this.#writes.push({ left: bytes.length, done });
    this.#pty.write(bytes);
  }

  endInput(): void {}

  resize(cols: number, rows: number): void {
    this.#pty.resize(cols, rows);
  }

  signal(number: number): void {
    this.#pty.signal(number);
  }

  destroy(): void {
    this.#pty.child.kill('SIGKILL');
  }

  #taken(bytes: number): void {
    let left = bytes;
    for (let [first] = this.#writes; first && left > 0; [first] = this.#writes) {
      const part = Math.min(left, first.left);
      first.left -= part;
      left -= part;
      if (first.left > 0) return;
      this.#writes.shift();
      first.done(true);
    }
  }
}

/** Our child's number is its own until it was waited for. */
const signalChild = (child: ChildProcess, number: number): void => {
  const { pid, exitCode, signalCode } = child;
  if (pid !== undefined && exitCode === null && signalCode === null) process.kill(pid, number);
};
