import { spawn, type ChildProcess } from 'node:child_process';
import { Duplex } from 'node:stream';
import type { ContainerDefinition, InstanceDefinition } from '../../../model/templates/template.ts';
import type { IsolationLevel } from './cgroups.ts';
import { startOrder, type StartOrder } from '../orders.ts';
import { afterReading } from '../after-reading.ts';
import type { HostMount } from '../protocol.ts';
import { publicMessage } from '../public-message.ts';
import { readProcessStat, type ProcessIdentity } from './process-identity.ts';
import { ownCgroups } from './visible-limits.ts';
import { bwrapOptions, foldersOf, writableMounts, type Rootfs } from './rootfs.ts';

/** Receives the order, sends the init and any error, and closes with the launcher. */
const SOCKET_FD = 3;
const TOLD_LIMIT = 4_096;
/** A leftover process may hold the socket open. */
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
  /** By default the spawner's own. */
  readonly uid: number | undefined;
  readonly cgroups: readonly string[];
  readonly output: string;
  readonly bare: StartOrder['bare'];
}

export interface LaunchEvents {
  /** Called before `executed` and `failed`, or never. */
  init(pid: number): void;
  /** The command runs, or bubblewrap ended before; the caller checks the init. */
  executed(): void;
  failed(reason: string): void;
  /** Called last. */
  ended(code: number | null, reason: string): void;
}

/**
 * A launcher that waits for its order, so that its pid can be noted first. Ends with the spawner.
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

  /** Throws if it can't start. */
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
        options: [...ownCgroups(terms.level, terms.cgroups), ...bwrapOptions(terms)],
        tmpfs: writableMounts(terms, terms.uid),
        network: hasOwnNetwork(terms),
        folders: foldersOf(terms.mounts),
        argv: terms.container.argv,
        bare: terms.bare,
      }),
    );
  }

  /** Our unreaped child's pid can't be reused. */
  kill(): void {
    this.#child.kill('SIGKILL');
  }

  /** Messages may arrive after the launcher's end. */
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

/** Whoever can mount can also make a network. */
const hasOwnNetwork = ({ definition, rootfs, uid }: LaunchTerms): boolean =>
  definition.network === 'none' && rootfs.writable !== undefined && uid !== undefined;

/** bubblewrap's JSON. */
const INIT_TOLD = /^\s*\{[^}]*"child-pid":\s*(\d+)[^}]*\}/;

const socketOf = (child: ChildProcess): Duplex => {
  const sockets: readonly unknown[] = child.stdio;
  const socket = sockets[SOCKET_FD];
  if (!(socket instanceof Duplex)) throw new Error(`descriptor ${SOCKET_FD} is not a socket`);
  return socket.on('error', () => {});
};

/**
 * Without a memory cgroup, each process may map the sandbox's memory, but never too little for
 * today's runtimes.
 */
const rlimitsOf = (terms: LaunchTerms): readonly (readonly [string, string, string])[] => {
  const files = ['nofile', '4096', '4096'] as const;
  if (terms.level !== 'prlimit') return [files];
  const memory = String(Math.max(terms.container.memoryBytes, LEAST_ADDRESS_SPACE));
  // Counts by host uid: without its own, a sandbox would count the daemon's processes.
  const processes = String(terms.pidsMax);
  return [
    files,
    ['as', memory, memory],
    ...(terms.uid === undefined ? [] : [['nproc', processes, processes] as const]),
  ];
};

const FOLDER_COMPLAINT = 'the folder ';

const reasonOf = (complaint: string): string => {
  const [, code, command] = /^(\w+) (.*)/s.exec(complaint.trim()) ?? [];
  if (complaint.startsWith(FOLDER_COMPLAINT)) return complaint;
  if (code === 'ENOENT') return `command not found: ${command}`;
  if (code === 'EACCES') return `command not executable: ${command}`;
  return `the command could not be run: ${complaint.trim()}`;
};
