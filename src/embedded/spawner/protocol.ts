import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LogEventCode } from '../../contracts/log-events.ts';
import type { Vitals } from '../../model/sandbox.ts';
import type { InstanceDefinition } from '../../model/templates/template.ts';
import type { IsolationLevel } from './sandbox/cgroups.ts';
import type { ProbeReport } from './probes/readiness.ts';
import type { ProcessRefusal, ProcessStart } from './processes/process-messages.ts';

/**
 * Version of the messages between daemon and spawner: JSON in frames of kind `message`. The first
 * message of each side is `hello`.
 *
 * `protocol` in `hello`, and `leave`, keep their shape in every version, so a daemon can ask any
 * spawner to leave. Output of commands travels in its own frames, on a channel that the daemon
 * chose.
 */
export const PROTOCOL = 14;

export interface SpawnerConfig {
  readonly launcherPath: string;
  readonly bwrapPath: string;
  /** Host uids for sandboxes, used if the spawner is root. */
  readonly uidRange: { readonly first: number; readonly count: number };
  readonly pidsMax: number;
  readonly parallelStarts: number;
  /** With `none`, new sandboxes are bare processes. The default is `auto`. */
  readonly isolation?: 'auto' | 'none';
  readonly logs: LogLimits;
}

/** Bounds for the stored output of sandboxes. */
export interface LogLimits {
  /** Maximum bytes of one file; a sandbox has two. */
  readonly fileBytes: number;
  /** Maximum bytes of all files together. */
  readonly totalBytes: number;
  /** Milliseconds to keep files after their last line. */
  readonly retentionMs: number;
}

export type DaemonMessage =
  | { readonly type: 'hello'; readonly protocol: number; readonly config: SpawnerConfig }
  /** Leave the data folder to another spawner: end at once. Sandboxes and their processes stay. */
  | { readonly type: 'leave' }
  /** Asks for `alive`. The spawner may send any other message instead. */
  | { readonly type: 'beat' }
  | { readonly type: 'list'; readonly request: number }
  | ({ readonly type: 'start'; readonly request: number; readonly id: string } & StartTerms)
  | { readonly type: 'kill'; readonly id: string }
  | ({ readonly type: 'exec'; readonly channel: number; readonly id: string } & ExecOrder)
  | SocketOrder
  /** Starts a process and its holder. */
  | {
      readonly type: 'hold';
      readonly request: number;
      readonly id: string;
      readonly order: ProcessStart;
    }
  /** Freezes or thaws the whole sandbox. */
  | {
      readonly type: 'freeze';
      readonly request: number;
      readonly id: string;
      readonly frozen: boolean;
    }
  /** Runs the instance's readiness probes now. */
  | { readonly type: 'probe'; readonly request: number; readonly id: string }
  | { readonly type: 'close'; readonly channel: number };

/**
 * Asks for a socket to the sandbox's ports or files. If `stale` is given, its agent no longer takes
 * connections: the spawner ends and replaces it.
 */
export interface SocketOrder {
  readonly type: 'forward' | 'files';
  readonly request: number;
  readonly id: string;
  readonly stale?: string;
}

export interface StartTerms {
  /** Owner of the sandbox. Starts and probes take turns by tenant. */
  readonly tenant: string;
  readonly definition: InstanceDefinition;
  /** `host` by default. */
  readonly image?: ImageRoot;
  readonly mounts?: readonly HostMount[];
}

/** A directory of the host, and its path inside; both absolute. */
export interface HostMount {
  readonly source: string;
  /** Mounts this folder below the source instead of the source. Missing folders are created. */
  readonly subPath?: string;
  readonly target: string;
  readonly readOnly: boolean;
}

/** The image that replaces the machine's /usr in a sandbox, and the sandbox's user. */
export interface ImageRoot {
  /** Identifies the image while sandboxes of it live. */
  readonly key: string;
  /** bubblewrap's options. */
  readonly system: readonly string[];
  /** Top-level names of the image's file system; nothing may be created below them. */
  readonly taken: readonly string[];
  readonly user: InsideIds;
}

export interface InsideIds {
  readonly uid: number;
  readonly gid: number;
}

export interface ExecOrder {
  readonly argv: readonly string[];
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  readonly timeoutMs: number;
  readonly outputLimit: number;
}

export type SpawnerMessage =
  | {
      readonly type: 'hello';
      readonly protocol: number;
      readonly pid: number;
      readonly isolation: IsolationLevel;
      /** Whether sandboxes can be frozen. */
      readonly freezes: boolean;
      readonly warnings: readonly string[];
    }
  /** The hello was not acceptable; the connection ends. */
  | { readonly type: 'unusable'; readonly reason: string }
  | { readonly type: 'alive' }
  | {
      readonly type: 'listed';
      readonly request: number;
      readonly instances: readonly InstanceReport[];
    }
  /** The order is in progress, or was not taken (`full`). */
  | { readonly type: 'started'; readonly request: number; readonly outcome: 'under-way' | 'full' }
  /** `programsEnded` is the reason why processes ended with their holders. */
  | {
      readonly type: 'fact';
      readonly id: string;
      readonly vitals: Vitals;
      readonly programsEnded?: string;
    }
  /** The socket for a `forward` or `files`. It works while its agent lives. */
  | { readonly type: 'forwarded'; readonly request: number; readonly socket: string }
  | { readonly type: 'probed'; readonly request: number; readonly reports: readonly ProbeReport[] }
  | { readonly type: 'frozen'; readonly request: number }
  /** The process of a `hold` has its holder, or was refused. */
  | { readonly type: 'held'; readonly request: number; readonly refusal?: ProcessRefusal }
  /** Refuses a `forward`, `files`, `probe` or `freeze`. */
  | {
      readonly type: 'unreachable';
      readonly request: number;
      readonly gone: boolean;
      readonly reason: string;
    }
  /** The sandbox does not run, or joining it failed. The channel ends. */
  | {
      readonly type: 'refused';
      readonly channel: number;
      readonly gone: boolean;
      readonly reason: string;
    }
  | {
      readonly type: 'exited';
      readonly channel: number;
      readonly exitCode: number;
      readonly timedOut: boolean;
      readonly truncated: boolean;
      readonly durationMs: number;
      readonly outOfMemory?: true;
    }
  | {
      readonly type: 'log';
      readonly level: 'info' | 'warn' | 'error';
      readonly event: LogEventCode;
      readonly fields: Readonly<Record<string, unknown>>;
    };

/** A handler for each type of message. */
export type Handlers<M extends { readonly type: string }> = {
  readonly [K in M['type']]: (message: M & { readonly type: K }) => void;
};

/** Calls the handler of a message. Does nothing for an unknown type. */
export const handle = <M extends { readonly type: string }, K extends M['type']>(
  handlers: Partial<Handlers<M>>,
  type: K,
  message: M & { readonly type: K },
): void => handlers[type]?.(message);

export interface InstanceReport {
  readonly id: string;
  readonly vitals: Vitals;
  /** Key of the sandbox's image; absent for `host`. */
  readonly image?: string;
  readonly frozen?: true;
  /** The reason why processes ended with their holders; reported once. */
  readonly programsEnded?: string;
}

/** A short, stable name for this data folder in shared places. */
export const nameOf = (dataDir: string): string =>
  `sandpool-${createHash('sha256').update(dataDir).digest('hex').slice(0, 12)}`;

/** Longest path of a Unix socket, in bytes. */
const SOCKET_PATH_LIMIT = 107;

export interface SpawnerPaths {
  /** Mode 0700. */
  readonly socketFolder: string;
  readonly socket: string;
  readonly lock: string;
  /**
   * Sockets for sandboxes' ports. Names have 8 characters, so these paths are as long as the
   * spawner socket's path.
   */
  readonly forwards: string;
  /** Sockets for sandboxes' files, with names of the same length. */
  readonly fileAgents: string;
  /** Sockets of the holders of processes, in a folder per sandbox. */
  readonly holders: string;
  /** Folder of files that sandboxes mount. Every user may read it. */
  readonly rootfs: string;
  /** Home folders of bare sandboxes. */
  readonly homes: string;
  /** Files with sandboxes' output. */
  readonly logs: string;
  /** Default folder of unpacked images. Every user may read it. */
  readonly images: string;
}

/**
 * `dataDir` is absolute. If it is too long for a socket's path, the socket is in a folder of the
 * temporary directory.
 */
export const pathsOf = (dataDir: string): SpawnerPaths => {
  const near = join(dataDir, 'spawner.sock');
  const name = nameOf(dataDir);
  const fits = Buffer.byteLength(near) <= SOCKET_PATH_LIMIT;
  const socketFolder = fits ? dataDir : join(tmpdir(), name);
  // Host uids of sandboxes can't enter the data folder, and Debian mounts /run with noexec.
  const rootfs = process.getuid?.() === 0 ? join('/var/lib', name) : join(dataDir, 'rootfs');
  return {
    socketFolder,
    socket: fits ? near : join(socketFolder, 'spawner.sock'),
    forwards: join(socketFolder, 'fwd'),
    fileAgents: join(socketFolder, 'fil'),
    // Holders outlive the socket folder, and their sockets' paths may be long.
    holders: join(dataDir, 'holders'),
    lock: join(dataDir, 'spawner.lock'),
    rootfs,
    homes: join(tmpdir(), `${name}-homes`),
    logs: join(dataDir, 'logs'),
    images: process.getuid?.() === 0 ? join('/var/lib', `${name}-images`) : join(dataDir, 'images'),
  };
};
