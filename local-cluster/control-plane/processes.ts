import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { endOfFile, lastLinesOf } from '../kept-output.ts';
import { rememberChild } from '../started-processes.ts';
import { clearFolder, markOf } from '../watched-folder.ts';

const STOP_MS = 5_000;
const LOG_LINES = 15;

/**
 * The processes of one control plane, by name. Each is in a session of its own, so that a Ctrl-C
 * reaches this process alone, and none outlives this process, however it ends: their folder is a
 * watched one.
 */
export class Processes {
  readonly #folder: string;
  readonly #children = new Map<string, ChildProcess>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  start(name: string, program: string, args: readonly string[]): void {
    const log = openSync(this.logOf(name), 'a', 0o600);
    const child = spawn(program, args, {
      cwd: this.#folder,
      detached: true,
      // The mark goes to what `exec` starts too.
      env: {
        PATH: process.env['PATH'] ?? '/usr/bin:/bin',
        HOME: this.#folder,
        ...markOf(this.#folder),
      },
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    child.on('error', () => undefined); // `isAlive` tells
    this.#children.set(name, child);
    rememberChild(name, child, () => endOfFile(this.logOf(name)));
  }

  isAlive(name: string): boolean {
    const child = this.#children.get(name);
    return child?.pid !== undefined && child.exitCode === null && child.signalCode === null;
  }

  pidOf(name: string): number | undefined {
    return this.isAlive(name) ? this.#children.get(name)?.pid : undefined;
  }

  signal(name: string, signal: NodeJS.Signals): void {
    if (this.isAlive(name)) this.#children.get(name)?.kill(signal);
  }

  /** Resolves once it has ended: by the signal, or by SIGKILL 5 s later. */
  async end(name: string, signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    const child = this.#children.get(name);
    if (!child || !this.isAlive(name)) return;
    const ended = once(child, 'exit');
    this.signal(name, signal);
    this.signal(name, 'SIGCONT'); // a stopped process hears no SIGTERM
    const timer = setTimeout(() => this.signal(name, 'SIGKILL'), STOP_MS);
    await ended;
    clearTimeout(timer);
  }

  logOf(name: string): string {
    return join(this.#folder, `${name}.log`);
  }

  /** For an error: where the log is, and how it ends. */
  lastWordsOf(name: string): string {
    const lines = lastLinesOf(endOfFile(this.logOf(name)), LOG_LINES);
    return [`${this.logOf(name)} ends so:`, ...lines.map((line) => `  ${line}`)].join('\n');
  }

  /** Ends what is left, also what `exec` started, and removes the folder. */
  async close(): Promise<void> {
    await clearFolder(this.#folder);
  }
}
