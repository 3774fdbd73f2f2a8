import { spawn, type ChildProcess } from 'node:child_process';
import { Duplex } from 'node:stream';
import type { ContainerDefinition, InstanceDefinition } from '../../../model/templates/template.ts';
import type { IsolationLevel } from './cgroups.ts';
import { startOrder, type StartOrder } from '../orders.ts';
import { afterReading } from '../after-reading.ts';
import type { HostMount } from '../protocol.ts';
import { publicMessage } from '../public-message.ts';
import { readProcessStat, type ProcessIdentity } from './process-identity.ts';
import { bwrapOptions, foldersOf, writableMounts, type Rootfs } from './rootfs.ts';

/**
 * One socket: the order goes in; the namespace's init comes out, and what kept the command from
 * running; its end is all's.
 */
const SOCKET_FD = 3;
const TOLD_LIMIT = 4_096;
/** The socket ends with the launcher, unless something that it left behind holds it. */
const LAST_WORDS_MS = 1_000;
const LEAST_ADDRESS_SPACE = 4 * 2 ** 30;

export interface LaunchTerms {
  readonly definition: InstanceDefinition;
  readonly container: ContainerDefinition;
  readonly rootfs: Rootfs;
  readonly mounts: readonly HostMount[];
  readonly bwrapPath: string;
  readonly level: IsolationLevel;
  readonly pidsMax: number;
  /** Absent: the spawner's own. */
  readonly uid: number | undefined;
  readonly cgroups: readonly string[];
  /** The path at which the fifo for its output is made. */
  readonly output: string;
  /** Given: run without bubblewrap. */
  readonly bare: StartOrder['bare'];
}

export interface LaunchEvents {
  /**
   * The pid that bubblewrap gives for the namespace's init. Comes before `executed` and `failed`,
   * or never.
   */
  init(pid: number): void;
  /** The command runs, or bubblewrap ended before it did: whether the init lives tells. */
  executed(): void;
  /** The command could not be executed. */
  failed(reason: string): void;
  /** The outer bubblewrap ended, or never started. Comes last. */
  ended(code: number | null, reason: string): void;
}

/**
 * A launcher that has started and waits for its order. It does nothing before `order`, and ends by
 * itself should the spawner end first; so what it is can be noted in between.
 */
export class Launch {
  readonly outer: ProcessIdentity;
  readonly #child: ChildProcess;
  readonly #socket: Duplex;

  private constructor(child: ChildProcess, outer: ProcessIdentity) {
    this.#child = child;
    this.outer = outer;
    this.#socket = socketOf(child);
  }

  /** Throws where the launcher can't be started. */
  static begin(launcherPath: string, events: LaunchEvents): Launch {
    const child = spawn(launcherPath, ['start'], {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
      env: {},
      cwd: '/',
    });
    let failure = '';
    child.once('error', (error) => {
      failure = publicMessage(error);
    });
    const stat = child.pid === undefined ? undefined : readProcessStat(child.pid);
    if (!stat) throw new Error(failure || 'the launcher could not be started');
    const launch = new Launch(child, { pid: stat.pid, startTime: stat.startTime });
    launch.#follow(events);
    child.once('exit', (code, signal) => {
      launch.#toldAll(() => {
        events.ended(
          code,
          failure ||
            (code === null ? `ended by ${signal ?? 'an unknown cause'}` : `exited with ${code}`),
        );
      });
    });
    return launch;
  }

  order(terms: LaunchTerms): void {
    this.#socket.end(
      startOrder({
        bwrap: terms.bwrapPath,
        uid: terms.uid,
        cgroups: terms.cgroups,
        output: terms.output,
        rlimits: rlimitsOf(terms),
        options: bwrapOptions(terms),
        tmpfs: writableMounts(terms.container, terms.rootfs, terms.uid),
        folders: foldersOf(terms.mounts),
        argv: terms.container.argv,
        bare: terms.bare,
      }),
    );
  }

  /**
   * SIGKILL to the outer process. It is our child and not yet waited for, so the number is its own.
   */
  kill(): void {
    this.#child.kill('SIGKILL');
  }

  /** Waits for what the launcher wrote before it ended, which may still be on its way. */
  #toldAll(then: () => void): void {
    const socket = this.#socket;
    if (socket.destroyed) {
      then();
      return;
    }
    const goOnWaiting = afterReading(LAST_WORDS_MS, () => socket.destroy());
    socket.once('close', () => {
      goOnWaiting();
      then();
    });
  }

  #follow(events: LaunchEvents): void {
    let told = '';
    let initEnd: number | undefined;
    this.#socket.on('data', (bytes: Buffer) => {
      if (told.length > TOLD_LIMIT) return;
      told += String(bytes);
      if (initEnd !== undefined) return;
      const match = INIT_TOLD.exec(told);
      if (!match) return;
      initEnd = match[0].length;
      events.init(Number(match[1]));
    });
    this.#socket.once('end', () => {
      this.#socket.destroy();
      const complaint = told.slice(initEnd ?? 0).trim();
      if (complaint === '') events.executed();
      else events.failed(reasonOf(complaint));
    });
  }
}

/** One JSON object, as bubblewrap writes it. */
const INIT_TOLD = /^\s*\{[^}]*"child-pid":\s*(\d+)[^}]*\}/;

const socketOf = (child: ChildProcess): Duplex => {
  const sockets: readonly unknown[] = child.stdio;
  const socket = sockets[SOCKET_FD];
  if (!(socket instanceof Duplex)) throw new Error(`descriptor ${SOCKET_FD} is no socket`);
  return socket.on('error', () => {});
};

/**
 * Makes a sandbox's rlimits. Where no cgroup limits it, each process may map as much as the sandbox
 * has memory, but enough for today's runtimes.
 */
const rlimitsOf = (terms: LaunchTerms): readonly (readonly [string, string, string])[] => {
  const files = ['nofile', '4096', '4096'] as const;
  if (terms.level !== 'prlimit') return [files];
  const memory = String(Math.max(terms.container.memoryBytes, LEAST_ADDRESS_SPACE));
  // Processes are counted by host uid: without one of its own that would count the daemon's.
  const processes = String(terms.pidsMax);
  return [
    files,
    ['as', memory, memory],
    ...(terms.uid === undefined ? [] : [['nproc', processes, processes] as const]),
  ];
};

/** Begins what the launcher says where it could not open a folder of a volume. */
const FOLDER_COMPLAINT = 'the folder ';

/** Puts in words what the launcher says where it could not execute the command. */
const reasonOf = (complaint: string): string => {
  const [, code, command] = /^(\w+) (.*)/s.exec(complaint.trim()) ?? [];
  if (complaint.startsWith(FOLDER_COMPLAINT)) return complaint;
  if (code === 'ENOENT') return `command not found: ${command}`;
  if (code === 'EACCES') return `command not executable: ${command}`;
  return `the command could not be run: ${complaint.trim()}`;
};
