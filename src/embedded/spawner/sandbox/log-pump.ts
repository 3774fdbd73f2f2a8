import { spawn } from 'node:child_process';
import {
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { tenantMark } from './cgroups.ts';
import { readProcessStat, type ProcessIdentity } from './process-identity.ts';
import type { LogLimits } from '../protocol.ts';
import type { SpawnerLog } from '../spawner-log.ts';
import type { Watcher } from '../watcher.ts';

export interface LogPumpOptions {
  readonly launcherPath: string;
  readonly folder: string;
  readonly watcher: Watcher;
  readonly log: SpawnerLog;
}

const KEY = 'logs';
/** See native/logs.h. */
const OWNER = '.of';
const LAUNCHER = /\/launcher(?: \(deleted\))?$/;
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;
/** It did not fail to start. */
const STEADY_MS = 1_000;
const END_PATIENCE_MS = 1_000;
const COMPLAINT_LIMIT = 1_024;

/**
 * Runs `launcher logs`, which outlives the spawner while there are sandboxes. If it ends early,
 * another continues at the same position.
 */
export class LogPump {
  readonly #options: LogPumpOptions;
  #args: readonly string[] = [];
  #pause = FIRST_PAUSE_MS;
  #restart: NodeJS.Timeout | undefined;
  #letGo: () => void = () => {};
  #gone: () => void = () => {};
  #running = false;
  #stopped = false;

  constructor(options: LogPumpOptions) {
    this.#options = options;
    mkdirSync(pipesIn(options.folder), { recursive: true, mode: 0o700 });
    // From launchers of a former spawner.
    const names = new Set(readdirSync(pipesIn(options.folder)));
    for (const name of names)
      if (
        name.endsWith('.new') ||
        (name.endsWith(OWNER) && !names.has(name.slice(0, -OWNER.length)))
      )
        rmSync(join(pipesIn(options.folder), name), { force: true });
  }

  /** Notes the log's owner beside the fifo. */
  outputOf(id: string, tenant: string): string {
    const fifo = join(pipesIn(this.#options.folder), id);
    const owner = `${fifo}${OWNER}`;
    if (lstatSync(owner, { throwIfNoEntry: false })) rmSync(owner, { force: true });
    symlinkSync(tenantMark(tenant), owner);
    return fifo;
  }

  use({ fileBytes, totalBytes, retentionMs }: LogLimits): void {
    const args = [this.#options.folder, fileBytes, totalBytes, Math.ceil(retentionMs / 1_000)].map(
      String,
    );
    if (this.#args.join() === args.join()) return;
    this.#args = args;
    const found = this.#find();
    if (!found) return this.#start();
    this.#follow(found);
    if (!this.#isAsWanted(found.pid)) this.#options.watcher.kill(KEY);
  }

  /** The process ends after the last sandbox. If `emptied`, waits for that end. */
  async release(emptied: boolean): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#restart);
    this.#letGo();
    if (!emptied || !this.#running) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, END_PATIENCE_MS);
      this.#gone = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #start(): void {
    const { launcherPath, log } = this.#options;
    const child = spawn(launcherPath, ['logs', ...this.#args], {
      stdio: ['pipe', 'ignore', 'pipe'],
      detached: true,
      env: {},
      cwd: '/',
    });
    child.once('error', (error) => log.error('log-launcher-not-started', { error: error.message }));
    const stat = child.pid === undefined ? undefined : readProcessStat(child.pid);
    if (!stat) return this.#again();
    let complaint = '';
    child.stderr
      ?.on('error', () => {})
      .on('data', (bytes: Buffer) => {
        complaint = (complaint + String(bytes)).slice(0, COMPLAINT_LIMIT);
      });
    child.once('exit', () => {
      if (complaint !== '') log.error('log-launcher-failed', { complaint: complaint.trim() });
    });
    child.stdin?.on('error', () => {});
    // End of file means that the spawner is gone.
    this.#letGo = () => child.stdin?.destroy();
    this.#follow(stat);
  }

  #follow(identity: ProcessIdentity): void {
    this.#running = true;
    const since = performance.now();
    this.#options.watcher.watch(KEY, identity, () => {
      this.#running = false;
      this.#gone();
      if (performance.now() - since > STEADY_MS) this.#pause = FIRST_PAUSE_MS;
      this.#again();
    });
  }

  #again(): void {
    if (this.#stopped) return;
    this.#restart = setTimeout(() => {
      const found = this.#find();
      if (found) this.#follow(found);
      else this.#start();
    }, this.#pause);
    this.#pause = Math.min(this.#pause * 2, MAX_PAUSE_MS);
  }

  /** Reads all of /proc. */
  #find(): ProcessIdentity | undefined {
    const uid = process.getuid?.();
    const pid = readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .find((candidate) => {
        try {
          if (statSync(`/proc/${candidate}`).uid !== uid || !LAUNCHER.test(programOf(candidate)))
            return false;
          const [mode, folder] = argsOf(candidate);
          return mode === 'logs' && folder === this.#options.folder;
        } catch {
          return false;
        }
      });
    return pid === undefined ? undefined : readProcessStat(pid);
  }

  #isAsWanted(pid: number): boolean {
    try {
      return (
        programOf(pid) === this.#options.launcherPath &&
        argsOf(pid).slice(1).join() === this.#args.join()
      );
    } catch {
      return false;
    }
  }
}

/** Has a fifo for each sandbox that can still print. */
export const pipesIn = (folder: string): string => join(folder, 'pipes');

const programOf = (pid: number): string => readlinkSync(`/proc/${pid}/exe`);
const argsOf = (pid: number): readonly string[] =>
  readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0').slice(1, -1);
