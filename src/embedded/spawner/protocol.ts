import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Vitals } from '../../model/sandbox.ts';
import type { InstanceDefinition } from '../../model/templates/template.ts';
import type { IsolationLevel } from './sandbox/cgroups.ts';
import type { ProbeReport } from './probes/readiness.ts';
import type { ProcessRefusal, ProcessStart } from './processes/process-messages.ts';

/**
 * Is the version of what daemon and spawner say to each other, as JSON in frames of kind `message`.
 * The first of each side is `hello`; `hello`'s `protocol` and `leave` keep their shape in every
 * version, so that a spawner left by another version can be told to go. Bytes of commands
 * travel as frames of their own, on the channel that the daemon chose.
 */
export const PROTOCOL = 14;

export interface SpawnerConfig {
  readonly launcherPath: string;
  readonly bwrapPath: string;
  /** Host uids for sandboxes; used where the spawner is root. */
  readonly uidRange: { readonly first: number; readonly count: number };
  readonly pidsMax: number;
  readonly parallelStarts: number;
  /** With `none` new sandboxes are bare processes. Absent: auto. */
  readonly isolation?: 'auto' | 'none';
  readonly logs: LogLimits;
}

/** Bounds of what is kept of sandboxes' output. */
export interface LogLimits {
  /** The most bytes of one file; a sandbox has two. */
  readonly fileBytes: number;
  /** The most bytes of all sandboxes' files together. */
  readonly totalBytes: number;
  /** Milliseconds for which files are kept after their last line. */
  readonly retentionMs: number;
}

export type DaemonMessage =
  | { readonly type: 'hello'; readonly protocol: number; readonly config: SpawnerConfig }
  /** Leave the data folder to another spawner: end at once. Sandboxes and their processes stay. */
  | { readonly type: 'leave' }
  /** Asks for a sign of life: `alive`, unless something else is heard meanwhile. */
  | { readonly type: 'beat' }
  | { readonly type: 'list'; readonly request: number }
  | ({ readonly type: 'start'; readonly request: number; readonly id: string } & StartTerms)
  | { readonly type: 'kill'; readonly id: string }
  | ({ readonly type: 'exec'; readonly channel: number; readonly id: string } & ExecOrder)
  | SocketOrder
  /** Start a process, and its holder. */
  | {
      readonly type: 'hold';
      readonly request: number;
      readonly id: string;
      readonly order: ProcessStart;
    }
  /** Has all of the sandbox stand still, or go on. */
  | {
      readonly type: 'freeze';
      readonly request: number;
      readonly id: string;
      readonly frozen: boolean;
    }
  /** Run the instance's readiness probes, now. */
  | { readonly type: 'probe'; readonly request: number; readonly id: string }
  /** Ends the command. */
  | { readonly type: 'close'; readonly channel: number };

/**
 * Asks for a socket that leads to the sandbox's ports, or to its files. Nothing takes a connection
 * at `stale` any more: its agent is ended, and another takes its place.
 */
export interface SocketOrder {
  readonly type: 'forward' | 'files';
  readonly request: number;
  readonly id: string;
  readonly stale?: string;
}

export interface StartTerms {
  /** The tenant of the sandbox: starts and probes take turns by tenant. */
  readonly tenant: string;
  readonly definition: InstanceDefinition;
  /** Absent: `host`. */
  readonly image?: ImageRoot;
  readonly mounts?: readonly HostMount[];
}

/** A directory of the host, and where it stands inside; both absolute. */
export interface HostMount {
  readonly source: string;
  /** Mounts this folder beneath the source instead of all of it. Missing ones are made. */
  readonly subPath?: string;
  readonly target: string;
  readonly readOnly: boolean;
}

/** The image that a sandbox sees in place of the machine's own /usr, and who it is inside. */
export interface ImageRoot {
  /** Names the image for as long as sandboxes of it live. */
  readonly key: string;
  /** bubblewrap's options. */
  readonly system: readonly string[];
  /** Names at the top of its file system below which nothing may be made. */
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
      /** Sandboxes can be frozen. */
      readonly freezes: boolean;
      readonly warnings: readonly string[];
    }
  /** The hello could not be accepted; the connection ends. */
  | { readonly type: 'unusable'; readonly reason: string }
  | { readonly type: 'alive' }
  | {
      readonly type: 'listed';
      readonly request: number;
      readonly instances: readonly InstanceReport[];
    }
  /** The order is under way; `full`: it was not taken. */
  | { readonly type: 'started'; readonly request: number; readonly outcome: 'under-way' | 'full' }
  /** `programsEnded`: why processes of it have ended with their holders. */
  | {
      readonly type: 'fact';
      readonly id: string;
      readonly vitals: Vitals;
      readonly programsEnded?: string;
    }
  /** The socket that a `forward` or `files` asked for, as long as the agent behind it lives. */
  | { readonly type: 'forwarded'; readonly request: number; readonly socket: string }
  | { readonly type: 'probed'; readonly request: number; readonly reports: readonly ProbeReport[] }
  | { readonly type: 'frozen'; readonly request: number }
  /** The process of a `hold` has its holder, or was refused. */
  | { readonly type: 'held'; readonly request: number; readonly refusal?: ProcessRefusal }
  /** To a `forward`, a `files`, a `probe` or a `freeze`. */
  | {
      readonly type: 'unreachable';
      readonly request: number;
      readonly gone: boolean;
      readonly reason: string;
    }
  /** There is nothing to join, or joining failed: the channel is over. */
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
      readonly event: string;
      readonly fields: Readonly<Record<string, unknown>>;
    };

/** A handler for each type of message. */
export type Handlers<M extends { readonly type: string }> = {
  readonly [K in M['type']]: (message: M & { readonly type: K }) => void;
};

/** Calls the handler of a message; of a type that it does not know it does nothing. */
export const handle = <M extends { readonly type: string }, K extends M['type']>(
  handlers: Partial<Handlers<M>>,
  type: K,
  message: M & { readonly type: K },
): void => handlers[type]?.(message);

export interface InstanceReport {
  readonly id: string;
  readonly vitals: Vitals;
  /** The key of the sandbox's image; absent for `host`. */
  readonly image?: string;
  readonly frozen?: true;
  /** Processes that ran in it have ended with their holders: why. Told once. */
  readonly programsEnded?: string;
}

/** Short and stable: what names this data folder outside of it. */
export const nameOf = (dataDir: string): string =>
  `sandpool-${createHash('sha256').update(dataDir).digest('hex').slice(0, 12)}`;

/** The longest path that a Unix socket takes. */
const SOCKET_PATH_LIMIT = 107;

export interface SpawnerPaths {
  /** Mode 0700. */
  readonly socketFolder: string;
  readonly socket: string;
  readonly lock: string;
  /**
   * Sockets that lead to sandboxes' ports. The names in it are of 8 characters, so that a path in
   * it is as long as the socket's.
   */
  readonly forwards: string;
  /** Sockets that lead to sandboxes' files, likewise. */
  readonly fileAgents: string;
  /** Sockets of the holders of processes, in a folder for each sandbox. */
  readonly holders: string;
  /** The folder of what sandboxes mount: everyone may look into it. */
  readonly rootfs: string;
  /** Folders of bare sandboxes. */
  readonly homes: string;
  /** Files of what sandboxes print. */
  readonly logs: string;
  /**
   * The folder in which images are unpacked unless configured otherwise: everyone may look into it.
   */
  readonly images: string;
}

/**
 * `dataDir` is absolute. Where it is too long for a socket's path, the socket lies in a folder of
 * the temporary one.
 */
export const pathsOf = (dataDir: string): SpawnerPaths => {
  const near = join(dataDir, 'spawner.sock');
  const name = nameOf(dataDir);
  const fits = Buffer.byteLength(near) <= SOCKET_PATH_LIMIT;
  const socketFolder = fits ? dataDir : join(tmpdir(), name);
  // Sandboxes' uids can't enter the data folder; and Debian mounts /run so that nothing there can
  // be executed.
  const rootfs = process.getuid?.() === 0 ? join('/var/lib', name) : join(dataDir, 'rootfs');
  return {
    socketFolder,
    socket: fits ? near : join(socketFolder, 'spawner.sock'),
    forwards: join(socketFolder, 'fwd'),
    fileAgents: join(socketFolder, 'fil'),
    holders: join(socketFolder, 'holders'),
    lock: join(dataDir, 'spawner.lock'),
    rootfs,
    homes: join(tmpdir(), `${name}-homes`),
    logs: join(dataDir, 'logs'),
    images: process.getuid?.() === 0 ? join('/var/lib', `${name}-images`) : join(dataDir, 'images'),
  };
};
