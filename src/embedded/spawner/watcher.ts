import { spawn, type ChildProcess } from 'node:child_process';
import type { SpawnerLog } from './spawner-log.ts';
import type { ProcessIdentity } from './sandbox/process-identity.ts';

interface Watched {
  readonly identity: ProcessIdentity;
  readonly gone: () => void;
  killed: boolean;
}

const RESTART_PAUSE_MS = 100;

/**
 * Watches and kills processes by `launcher watch`, whose pidfds never signal a reused pid. If it
 * ends, another takes over.
 */
export class Watcher {
  readonly #launcherPath: string;
  readonly #log: SpawnerLog;
  readonly #watched = new Map<string, Watched>();
  #process: ChildProcess | undefined;
  #restart: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(launcherPath: string, log: SpawnerLog) {
    this.#launcherPath = launcherPath;
    this.#log = log;
  }

  start(): void {
    const child = spawn(this.#launcherPath, ['watch'], {
      stdio: ['pipe', 'pipe', 'ignore'],
      env: {},
      cwd: '/',
    });
    this.#process = child;
    child.once('error', (error) => this.#ended(child, error.message));
    // descriptors ran out: an error follows
    if (child.stdio === undefined) return;
    child.once('exit', (code, signal) => this.#ended(child, `exited with ${code ?? signal}`));
    let rest = '';
    child.stdout.setEncoding('latin1').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.#hear(line);
    });
    child.stdin.on('error', () => {});
    for (const [key, watched] of this.#watched) this.#tell(key, watched);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#restart);
    this.#process?.stdin?.end();
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Calls `gone` once. Keys contain no blanks. A known key keeps its process. */
  watch(key: string, identity: ProcessIdentity, gone: () => void): void {
    if (this.#watched.has(key)) return;
    const watched = { identity, gone, killed: false };
    this.#watched.set(key, watched);
    this.#tell(key, watched);
  }

  /** Ignores an unknown key. */
  kill(key: string): void {
    const watched = this.#watched.get(key);
    if (!watched) return;
    watched.killed = true;
    this.#say(`kill ${key}\n`);
  }

  drop(key: string): void {
    if (this.#watched.delete(key)) this.#say(`drop ${key}\n`);
  }

  #tell(key: string, { identity, killed }: Watched): void {
    this.#say(
      `watch ${key} ${identity.pid} ${identity.startTime}\n${killed ? `kill ${key}\n` : ''}`,
    );
  }

  /** If it has just ended, the next process gets the line. */
  #say(text: string): void {
    this.#process?.stdin?.write(text);
  }

  #hear(line: string): void {
    if (line.startsWith('gone ')) this.#gone(line.slice('gone '.length));
    else if (line.startsWith('error ')) this.#log.error('process-not-watched', { line });
  }

  #gone(key: string): void {
    const watched = this.#watched.get(key);
    this.#watched.delete(key);
    watched?.gone();
  }

  #ended(child: ChildProcess, why: string): void {
    if (this.#process !== child) return;
    this.#process = undefined;
    if (this.#stopped) return;
    this.#log.warn('watch-launcher-ended', { why });
    this.#restart = setTimeout(() => this.start(), RESTART_PAUSE_MS);
  }
}
