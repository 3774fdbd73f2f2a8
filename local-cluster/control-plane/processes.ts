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
 * Each has its own session, so that a Ctrl-C reaches this process only. None outlives this process:
 * their folder is watched.
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
      // Also for what `exec` starts.
      env: {
        PATH: process.env['PATH'] ?? '/usr/bin:/bin',
        HOME: this.#folder,
        ...markOf(this.#folder),
      },
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    child.on('error', () => undefined); // see `isAlive`
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

  /** By the signal, or by SIGKILL 5 s later. */
  async end(name: string, signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    const child = this.#children.get(name);
    if (!child || !this.isAlive(name)) return;
    const ended = once(child, 'exit');
    this.signal(name, signal);
    this.signal(name, 'SIGCONT'); // a stopped process ignores SIGTERM
    const timer = setTimeout(() => this.signal(name, 'SIGKILL'), STOP_MS);
    await ended;
    clearTimeout(timer);
  }

  logOf(name: string): string {
    return join(this.#folder, `${name}.log`);
  }

  /** Path and end of its log. */
  lastWordsOf(name: string): string {
    const lines = lastLinesOf(endOfFile(this.logOf(name)), LOG_LINES);
    return [`${this.logOf(name)} ends so:`, ...lines.map((line) => `  ${line}`)].join('\n');
  }

  /** Also ends what `exec` started, and removes the folder. */
  async close(): Promise<void> {
    await clearFolder(this.#folder);
  }
}
