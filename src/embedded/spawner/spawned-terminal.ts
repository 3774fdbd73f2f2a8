import { signalOf } from '../../lib/signal-names.ts';
import { FRAME_KINDS, MAX_CHUNK } from './frames.ts';
import { watchMemory } from './sandbox/cgroup-folders.ts';
import type { JoinPlace } from './sandbox/join-place.ts';
import { LAUNCHER_SIGNALS } from './launcher-signals.ts';
import { joinOrder } from './orders.ts';
import { WINDOW, type TerminalOrder } from './protocol.ts';
import { Pty } from './pty.ts';
import { environmentOf } from './sandbox/rootfs.ts';

/** Input that was taken is granted again in such portions. */
const GRANT = WINDOW / 8;

export interface TerminalEvents {
  output(kind: typeof FRAME_KINDS.output, bytes: Buffer): boolean;
  /** The daemon may send so many bytes more. */
  grant(bytes: number): void;
  exited(end: { readonly exitCode: number; readonly outOfMemory?: true }): void;
}

/**
 * A terminal in a sandbox. Each way at most a window of bytes is under way: without the daemon's
 * credit it is not read, and then its command waits.
 */
export class SpawnedTerminal {
  readonly #pty: Pty;
  readonly #events: TerminalEvents;
  #credit = WINDOW;
  #taken = 0;
  #blocked = false;

  /** Throws where no terminal can be made. */
  constructor(
    launcherPath: string,
    { place, order }: { readonly place: JoinPlace; readonly order: TerminalOrder },
    events: TerminalEvents,
  ) {
    this.#events = events;
    const hasMemoryRunOut = watchMemory(place.cgroups);
    this.#pty = new Pty(
      {
        file: launcherPath,
        args: ['join'],
        // A bare process has no devices of its own.
        sandbox: place.bare ? undefined : place.init,
        cols: order.cols,
        rows: order.rows,
        order: joinOrder({
          init: place.init,
          user: place.user,
          bare: place.bare,
          terminal: true,
          cgroups: place.cgroups,
          cwd: place.workingDir,
          env: environmentOf(place.env, { TERM: 'xterm-256color' }, order.env ?? {}),
          argv: order.argv,
        }),
      },
      {
        output: (bytes) => this.#output(bytes),
        taken: (bytes) => this.#take(bytes),
        exited: (exitCode) =>
          events.exited({
            exitCode,
            outOfMemory: signalOf(exitCode) === 'KILL' && hasMemoryRunOut() ? true : undefined,
          }),
      },
    );
  }

  input(bytes: Buffer): void {
    this.#pty.write(bytes);
  }

  credit(bytes: number): void {
    this.#credit += bytes;
    this.#look();
  }

  /** The socket to the daemon has room again. */
  resume(): void {
    this.#blocked = false;
    this.#look();
  }

  resize(cols: number, rows: number): void {
    this.#pty.resize(cols, rows);
  }

  signal(name: string): void {
    const number = LAUNCHER_SIGNALS[name];
    if (number !== undefined) this.#pty.signal(number);
  }

  close(): void {
    this.#pty.close();
  }

  #output(bytes: Buffer): void {
    this.#credit -= bytes.length;
    for (let at = 0; at < bytes.length; at += MAX_CHUNK) {
      if (!this.#events.output(FRAME_KINDS.output, bytes.subarray(at, at + MAX_CHUNK)))
        this.#blocked = true;
    }
    if (this.#blocked || this.#credit <= 0) this.#pty.pause();
  }

  #look(): void {
    if (!this.#blocked && this.#credit > 0) this.#pty.resume();
  }

  #take(bytes: number): void {
    this.#taken += bytes;
    if (this.#taken < GRANT) return;
    this.#events.grant(this.#taken);
    this.#taken = 0;
  }
}
