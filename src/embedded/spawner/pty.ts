import { spawn } from 'node:child_process';
import { closeSync, readSync, writeSync, constants, fstatSync, openSync } from 'node:fs';
import { createRequire } from 'node:module';
import { ReadStream } from 'node:tty';
import { type ProcessIdentity, isAlive } from './sandbox/process-identity.ts';
import { afterReading } from './after-reading.ts';
import { withPipes } from '../../lib/processes.ts';

/**
 * Declares what is used of node-pty: its native part, for node-pty's own streams drop what is
 * unread when the shell exits.
 */
interface PtyBinding {
  resize(master: number, cols: number, rows: number, xPixel: number, yPixel: number): void;
}

export interface PtyEvents {
  output(bytes: Buffer): void;
  /** So many bytes of input were taken by the terminal. */
  taken(bytes: number): void;
  /** Once, after the last output. */
  exited(exitCode: number): void;
}

export interface PtyCommand {
  readonly file: string;
  readonly args: readonly string[];
  /** The init of the sandbox whose terminal it is to be; absent: one of the host. */
  readonly sandbox?: ProcessIdentity;
  /** Goes to the command on descriptor 3. */
  readonly order: Buffer;
  readonly cols: number;
  readonly rows: number;
}

/** A full terminal is asked again after this, doubled each time up to the second. */
const FULL_PAUSE_MS = 2;
const MAX_FULL_PAUSE_MS = 100;
/** From the hang-up to the end of whatever ignores it. */
const HANG_UP_PATIENCE_MS = 500;
const STUBBORN_MS = 2_000;
/** From the command's end to the end of its terminal, while somebody reads. */
const DRAIN_MS = 1_000;
/** Bytes that the kernel holds for a terminal at most, about. */
const KERNEL_BYTES = 16 << 10;

/** A pseudo-terminal and its command, which opens the other end by the master on descriptor 4. */
export class Pty {
  readonly #binding: PtyBinding;
  readonly #master: number;
  readonly #stream: ReadStream;
  readonly #child: ReturnType<typeof spawn>;
  readonly #events: PtyEvents;
  readonly #input: Buffer[] = [];
  #inputPause = FULL_PAUSE_MS;
  #inputTimer: NodeJS.Timeout | undefined;
  #stopDraining: (() => void) | undefined;
  #exitCode: number | undefined;
  #open = true;
  #told = false;
  #hangUp: NodeJS.Timeout | undefined;

  /** Throws where no terminal can be made, or node-pty is missing. */
  constructor(command: PtyCommand, events: PtyEvents) {
    this.#binding = ptyBinding();
    this.#events = events;
    const master = openMaster(command.sandbox);
    this.#master = master;
    try {
      this.#binding.resize(master, command.cols, command.rows, 0, 0);
      this.#child = spawned(command, master);
    } catch (error) {
      closeSync(master);
      throw error;
    }
    const order = this.#child.stdio[3];
    if (order && 'end' in order) order.on('error', () => {}).end(command.order);
    this.#stream = new ReadStream(master);
    this.#stream.on('data', (bytes) => events.output(Buffer.from(bytes)));
    // The last holder of the other side is gone. libuv may take a hang-up for the end while the
    // kernel still holds bytes, and an error leaves behind what the stream holds.
    this.#stream.once('end', () => {
      this.#readRest();
      this.#closed();
    });
    this.#stream.on('error', () => {
      this.#readHeld();
      this.#closed();
    });
    this.#child.once('error', () => this.#exited(127));
    this.#child.once('exit', (code) => this.#exited(code ?? 137));
  }

  /** The launcher, whose descriptor 3 tells how the start went. */
  get child(): ReturnType<typeof spawn> {
    return this.#child;
  }

  /**
   * Stops and starts reading; what the command prints meanwhile stays in the kernel, and then it
   * waits.
   */
  pause(): void {
    this.#stream.pause();
    this.#stopDraining?.();
  }

  resume(): void {
    this.#stream.resume();
    this.#awaitDrain();
  }

  write(bytes: Buffer): void {
    if (!this.#open) {
      this.#events.taken(bytes.length);
      return;
    }
    this.#input.push(bytes);
    if (this.#input.length === 1) this.#pump();
  }

  resize(cols: number, rows: number): void {
    if (!this.#open) return;
    try {
      this.#binding.resize(this.#master, cols, rows, 0, 0);
    } catch {
      // A size that no terminal has, or one that just ended: it stays as it is.
    }
  }

  /**
   * To the launcher, which passes it on to the terminal's foreground. It is our child, so the
   * number is its own until it was waited for.
   */
  signal(number: number): void {
    const { pid, exitCode, signalCode } = this.#child;
    // ChildProcess.kill refuses real-time signals.
    if (pid !== undefined && exitCode === null && signalCode === null) process.kill(pid, number);
  }

  /** The command gets SIGHUP; what stays of its process group is killed. */
  close(): void {
    this.#closed();
    if (this.#exitCode !== undefined || this.#hangUp) return;
    this.#hangUp = setTimeout(() => {
      this.#child.kill('SIGTERM');
      this.#hangUp = setTimeout(() => this.#child.kill('SIGKILL'), STUBBORN_MS);
    }, HANG_UP_PATIENCE_MS);
  }

  /**
   * No more than the kernel can have held: whoever opened the terminal again may write without end.
   */
  #readRest(): void {
    const bytes = Buffer.allocUnsafe(KERNEL_BYTES);
    try {
      for (let left = KERNEL_BYTES; left > 0;) {
        const size = readSync(this.#master, bytes, 0, left, null);
        if (size === 0) return;
        this.#events.output(Buffer.from(bytes.subarray(0, size)));
        left -= size;
      }
    } catch {
      // EIO: nothing is left.
    }
  }

  #readHeld(): void {
    for (
      let bytes: unknown = this.#stream.read();
      bytes instanceof Buffer;
      bytes = this.#stream.read()
    )
      this.#events.output(bytes);
  }

  /** Never blocks: a terminal that is full takes nothing, and is asked again later. */
  #pump(): void {
    for (let [bytes] = this.#input; bytes && this.#open; [bytes] = this.#input) {
      const taken = this.#tryWrite(bytes);
      if (taken === 0) {
        this.#inputTimer = setTimeout(() => this.#pump(), this.#inputPause);
        this.#inputPause = Math.min(this.#inputPause * 2, MAX_FULL_PAUSE_MS);
        return;
      }
      this.#inputPause = FULL_PAUSE_MS;
      if (taken === bytes.length) this.#input.shift();
      else this.#input[0] = bytes.subarray(taken);
      this.#events.taken(taken);
    }
  }

  #tryWrite(bytes: Buffer): number {
    try {
      return writeSync(this.#master, bytes);
    } catch {
      return 0;
    }
  }

  #exited(exitCode: number): void {
    this.#exitCode = exitCode;
    clearTimeout(this.#hangUp);
    if (this.#open) this.#awaitDrain();
    else this.#tell();
  }

  /** A background process may hold the terminal open after the shell's end. */
  #awaitDrain(): void {
    this.#stopDraining?.();
    if (this.#exitCode !== undefined && this.#open && !this.#stream.isPaused())
      this.#stopDraining = afterReading(DRAIN_MS, () => {
        this.#readRest(); // after SIGSTOP or a paused VM, the stream has read its first 4 KiB only
        this.#closed();
      });
  }

  #closed(): void {
    if (!this.#open) return;
    this.#open = false;
    clearTimeout(this.#inputTimer);
    this.#stopDraining?.();
    this.#input.length = 0;
    this.#stream.destroy();
    this.#tell();
  }

  #tell(): void {
    if (this.#open || this.#exitCode === undefined || this.#told) return;
    this.#told = true;
    this.#events.exited(this.#exitCode);
  }
}

/**
 * Throws where no process can be started for want of descriptors: such a child has no streams at
 * all.
 */
const spawned = ({ file, args }: PtyCommand, master: number): ReturnType<typeof spawn> => {
  // Not among 0 to 2: for these the runtime has the master block, here too.
  return withPipes(
    spawn(file, args, {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', master],
      env: {},
      cwd: '/',
    }),
  );
};

let binding: PtyBinding | undefined;

/** Loaded with the first terminal. */
const ptyBinding = (): PtyBinding => {
  binding ??= parsedBinding(createRequire(import.meta.url)('node-pty'));
  return binding;
};

const parsedBinding = (module: unknown): PtyBinding => {
  const native =
    typeof module === 'object' && module !== null && 'native' in module ? module.native : undefined;
  if (typeof native !== 'object' || native === null || !('resize' in native))
    throw new Error('this version of node-pty has no native resize');
  return native as PtyBinding;
};

const FLAGS = constants.O_RDWR | constants.O_NOCTTY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
/**
 * The device number of /dev/ptmx as stat tells it, major 5 and minor 2: each open of it makes a new
 * terminal.
 */
const PTMX_DEVICE = (5 << 8) | 2;

/**
 * Opens the master of a new terminal: one of the sandbox's own, which has a name in its /dev/pts;
 * where there is none to be had, because the sandbox took all that sandboxes may have, one of the
 * host's, which keeps some for itself (kernel.pty.reserve). Throws where there is none either.
 */
const openMaster = (sandbox: ProcessIdentity | undefined): number =>
  (sandbox && masterWithin(sandbox)) ?? openSync('/dev/ptmx', FLAGS & ~constants.O_NOFOLLOW);

/**
 * The path can be trusted: nobody inside can change /dev, which is read-only, or mount anything.
 * That the process still runs afterwards says that the pid was its own before, too.
 */
const masterWithin = (init: ProcessIdentity): number | undefined => {
  let master: number;
  try {
    master = openSync(`/proc/${init.pid}/root/dev/pts/ptmx`, FLAGS);
  } catch {
    return undefined;
  }
  if (fstatSync(master).rdev === PTMX_DEVICE && isAlive(init)) return master;
  closeSync(master);
  return undefined;
};
