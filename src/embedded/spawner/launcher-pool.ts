import { spawn, type ChildProcess } from 'node:child_process';
import { withPipes } from '../../lib/processes.ts';

export type LauncherKind = 'join' | 'hold';

/**
 * Starts one idle launcher in advance, so a command need not wait. It belongs to no sandbox before
 * its order, and ends with the spawner.
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

  /** The caller writes the order to descriptor 3. Throws if no process can start. */
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
      // The next command tries again, and reports the failure.
    }
  }
}

const begin = (
  launcherPath: string,
  kind: LauncherKind,
  input: 'ignore' | 'pipe' = 'ignore',
): ChildProcess => {
  const stdout = kind === 'hold' ? 'ignore' : 'pipe';
  return withPipes(
    spawn(launcherPath, [kind], {
      stdio: [input, stdout, 'pipe', 'pipe'],
      env: {},
      cwd: '/',
    }),
  );
};
