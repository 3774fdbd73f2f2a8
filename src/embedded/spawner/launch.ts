import { spawn, type ChildProcess } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { ContainerDefinition, InstanceDefinition } from '../../model/template.ts';
import type { IsolationLevel } from './cgroups.ts';
import { startOrder, type StartOrder } from './orders.ts';
import { readProcessStat, type ProcessIdentity } from './process-identity.ts';
import { bwrapOptions, type Rootfs } from './rootfs.ts';

const ORDER_FD = 3;
const INFO_FD = 4;
const READY_FD = 5;
const TOLD_LIMIT = 4_096;
const LEAST_ADDRESS_SPACE = 4 * 2 ** 30;

export interface LaunchTerms {
  readonly definition: InstanceDefinition;
  readonly container: ContainerDefinition;
  readonly rootfs: Rootfs;
  readonly bwrapPath: string;
  readonly level: IsolationLevel;
  readonly pidsMax: number;
  /** Absent: the spawner's own. */
  readonly uid: number | undefined;
  readonly cgroups: readonly string[];
  /** Where the fifo for its output is made. */
  readonly output: string;
  /** Given: run without bubblewrap. */
  readonly bare: StartOrder['bare'];
}

export interface LaunchEvents {
  /** The pid that bubblewrap gives for the namespace's init. Comes before `executed` and `failed`, or never. */
  init(pid: number): void;
  /** The command runs, or bubblewrap ended before it did: whether the init lives tells. */
  executed(): void;
  /** The command could not be executed. */
  failed(reason: string): void;
  /** The outer bubblewrap ended, or never started. Comes last. */
  ended(code: number | null, reason: string): void;
}

/**
 * A launcher that has started and waits for its order. It does nothing before `order`, and ends by itself should the
 * spawner end first; so what it is can be noted in between.
 */
export class Launch {
  readonly outer: ProcessIdentity;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, outer: ProcessIdentity) {
    this.#child = child;
    this.outer = outer;
  }

  /** Throws where the launcher can't be started. */
  static begin(launcherPath: string, events: LaunchEvents): Launch {
    const child = spawn(launcherPath, ['start'], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe', 'pipe'], env: {}, cwd: '/' });
    let failure = '';
    child.once('error', (error) => { failure = error.message; });
    const stat = child.pid === undefined ? undefined : readProcessStat(child.pid);
    if (!stat) throw new Error(failure || `the launcher ${launcherPath} could not be started`);
    const launch = new Launch(child, { pid: stat.pid, startTime: stat.startTime });
    launch.#follow(events);
    child.once('exit', (code, signal) => {
      launch.#closePipes();
      events.ended(code, failure || (code === null ? `ended by ${signal ?? 'an unknown cause'}` : `exited with ${code}`));
    });
    return launch;
  }

  order(terms: LaunchTerms): void {
    const pipe = writable(this.#child, ORDER_FD);
    pipe.end(startOrder({
      bwrap: terms.bwrapPath, uid: terms.uid, cgroups: terms.cgroups, output: terms.output, rlimits: rlimitsOf(terms),
      options: bwrapOptions(terms.definition, terms.container, terms.rootfs), argv: terms.container.argv, bare: terms.bare,
    }));
  }

  /** SIGKILL to the outer process. It is our child and not yet waited for, so the number is its own. */
  kill(): void {
    this.#child.kill('SIGKILL');
  }

  #follow(events: LaunchEvents): void {
    let told = '';
    let complaint = '';
    let known = false;
    let open = 2;
    const ended = (): void => {
      open -= 1;
      if (open > 0) return;
      this.#closePipes();
      if (complaint === '') events.executed();
      else events.failed(reasonOf(complaint));
    };
    readable(this.#child, INFO_FD).once('end', ended).on('data', (bytes: Buffer) => {
      if (known || told.length > TOLD_LIMIT) return;
      told += String(bytes);
      const match = /"child-pid":\s*(\d+)\D/.exec(told);
      if (!match) return;
      known = true;
      events.init(Number(match[1]));
    });
    readable(this.#child, READY_FD).once('end', ended).on('data', (bytes: Buffer) => {
      if (complaint.length < TOLD_LIMIT) complaint += String(bytes);
    });
    writable(this.#child, ORDER_FD);
  }

  #closePipes(): void {
    for (const pipe of [ORDER_FD, INFO_FD, READY_FD]) pipeAt(this.#child, pipe)?.destroy();
  }
}

const pipeAt = (child: ChildProcess, fd: number): Readable | Writable | null | undefined => {
  const pipes: readonly (Readable | Writable | null | undefined)[] = child.stdio;
  return pipes[fd];
};

const readable = (child: ChildProcess, fd: number): Readable => {
  const pipe = pipeAt(child, fd);
  if (!pipe || !('read' in pipe)) throw new Error(`descriptor ${fd} is no pipe`);
  return pipe.on('error', () => {});
};

const writable = (child: ChildProcess, fd: number): Writable => {
  const pipe = pipeAt(child, fd);
  if (!pipe || !('write' in pipe)) throw new Error(`descriptor ${fd} is no pipe`);
  return pipe.on('error', () => {});
};

/** Where no cgroup limits it, each process may map as much as the sandbox has memory, but enough for today's runtimes. */
const rlimitsOf = (terms: LaunchTerms): readonly (readonly [string, string, string])[] => {
  const files = ['nofile', '4096', '4096'] as const;
  if (terms.level !== 'prlimit') return [files];
  const memory = String(Math.max(terms.container.memoryBytes, LEAST_ADDRESS_SPACE));
  // Processes are counted by host uid: without one of its own that would count the daemon's.
  const processes = String(terms.pidsMax);
  return [files, ['as', memory, memory], ...(terms.uid === undefined ? [] : [['nproc', processes, processes] as const])];
};

/** What the launcher says where it could not execute the command, in words. */
const reasonOf = (complaint: string): string => {
  const [, code, command] = /^(\w+) (.*)/s.exec(complaint.trim()) ?? [];
  if (code === 'ENOENT') return `command not found: ${command}`;
  if (code === 'EACCES') return `command not executable: ${command}`;
  return `the command could not be run: ${complaint.trim()}`;
};
