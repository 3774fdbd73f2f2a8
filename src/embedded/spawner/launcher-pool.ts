import { spawn, type ChildProcess } from 'node:child_process';
import { withPipes } from '../../lib/processes.ts';

/** Says what launchers become: the outer halves of commands, or holders of processes. */
export type LauncherKind = 'join' | 'hold';

/**
 * Launchers that join sandboxes for commands or processes. From the first command on one waits for
 * the next, started and idle, so that a command need not wait until a process is made. It holds
 * nothing of any sandbox, knows none before its order, and ends by itself with the spawner.
 */
export class LauncherPool {
  readonly #launcherPath: () => string;
  readonly #kind: LauncherKind;
  #waiting: { readonly child: ChildProcess; readonly path: string } | undefined;
  #soon: NodeJS.Immediate | undefined;

  constructor(launcherPath: () => string, kind: LauncherKind = 'join') {
    this.#launcherPath = launcherPath;
    this.#kind = kind;
  }

  /**
   * One whose order is still to be written to descriptor 3. Throws where no process can be made.
   */
  take(options: { readonly withInput: boolean }): ChildProcess {
    if (options.withInput) return begin(this.#launcherPath(), this.#kind, 'pipe');
    const waiting = this.#waiting;
    this.#waiting = undefined;
    this.#soon ??= setImmediate(() => {
      this.#prepare();
    });
    if (!waiting) return begin(this.#launcherPath(), this.#kind);
    waiting.child.removeAllListeners();
    if (waiting.path === this.#launcherPath()) return waiting.child;
    waiting.child.on('error', () => {}).kill('SIGKILL');
    return begin(this.#launcherPath(), this.#kind);
  }

  stop(): void {
    if (this.#soon) clearImmediate(this.#soon);
    this.#waiting?.child.kill('SIGKILL');
    this.#waiting = undefined;
  }

  #prepare(): void {
    this.#soon = undefined;
    const path = this.#launcherPath();
    try {
      const child = begin(path, this.#kind);
      const lost = (): void => {
        if (this.#waiting?.child === child) this.#waiting = undefined;
      };
      this.#waiting = { child: child.once('exit', lost).once('error', lost), path };
    } catch {
      // The next command tries for itself, and says why it can't.
    }
  }
}

const begin = (
  launcherPath: string,
  kind: LauncherKind,
  input: 'ignore' | 'pipe' = 'ignore',
): ChildProcess => {
  const output = kind === 'hold' ? 'ignore' : 'pipe';
  return withPipes(
    spawn(launcherPath, [kind], {
      stdio: [input, output, output, 'pipe'],
      env: {},
      cwd: '/',
    }),
  );
};
