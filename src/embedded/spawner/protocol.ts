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
 * Version of the messages: JSON in frames of kind `message`, beginning with `hello` from each side.
 *
 * `protocol` in `hello`, and `leave`, keep their shape in every version, so any daemon can ask any
 * spawner to leave.
 */
export const PROTOCOL = 14;

export interface SpawnerConfig {
  readonly launcherPath: string;
  readonly bwrapPath: string;
  /** Used if the spawner is root. */
  readonly uidRange: { readonly first: number; readonly count: number };
  readonly pidsMax: number;
  readonly parallelStarts: number;
  /** `none`: new sandboxes are bare processes. */
  readonly isolation?: 'auto' | 'none';
  readonly logs: LogLimits;
}

export interface LogLimits {
  /** A sandbox has two files. */
  readonly fileBytes: number;
  /** All files together. */
  readonly totalBytes: number;
  /** After their last line. */
  readonly retentionMs: number;
}

export type DaemonMessage =
  | { readonly type: 'hello'; readonly protocol: number; readonly config: SpawnerConfig }
  /** End at once. Sandboxes and their processes stay. */
  | { readonly type: 'leave' }
  /** Any message answers it. */
  | { readonly type: 'beat' }
  | { readonly type: 'list'; readonly request: number }
  | ({ readonly type: 'start'; readonly request: number; readonly id: string } & StartTerms)
  | { readonly type: 'kill'; readonly id: string }
  | ({ readonly type: 'exec'; readonly channel: number; readonly id: string } & ExecOrder)
  | SocketOrder
  | {
      readonly type: 'hold';
      readonly request: number;
      readonly id: string;
      readonly order: ProcessStart;
    }
  | {
      readonly type: 'freeze';
      readonly request: number;
      readonly id: string;
      readonly frozen: boolean;
    }
  | { readonly type: 'probe'; readonly request: number; readonly id: string }
  | { readonly type: 'close'; readonly channel: number };

/** `stale`: this agent takes no connections; the spawner replaces it. */
export interface SocketOrder {
  readonly type: 'forward' | 'files';
  readonly request: number;
  readonly id: string;
  readonly stale?: string;
}

export interface StartTerms {
  readonly tenant: string;
  readonly definition: InstanceDefinition;
  readonly image?: ImageRoot;
  readonly mounts?: readonly HostMount[];
}

/** Both paths are absolute. */
export interface HostMount {
  readonly source: string;
  /** Folder below the source to mount instead. Missing folders are created. */
  readonly subPath?: string;
  readonly target: string;
  readonly readOnly: boolean;
}

export interface ImageRoot {
  /** Unique while sandboxes of the image live. */
  readonly key: string;
  readonly system: readonly string[];
  /** Top-level names of the image; nothing may be created below them. */
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
      readonly freezes: boolean;
      readonly warnings: readonly string[];
    }
  /** The connection ends. */
  | { readonly type: 'unusable'; readonly reason: string }
  | { readonly type: 'alive' }
  | {
      readonly type: 'listed';
      readonly request: number;
      readonly instances: readonly InstanceReport[];
    }
  /** `full`: not taken. */
  | { readonly type: 'started'; readonly request: number; readonly outcome: 'under-way' | 'full' }
  | {
      readonly type: 'fact';
      readonly id: string;
      readonly vitals: Vitals;
      readonly programsEnded?: string;
    }
  | { readonly type: 'forwarded'; readonly request: number; readonly socket: string }
  | { readonly type: 'probed'; readonly request: number; readonly reports: readonly ProbeReport[] }
  | { readonly type: 'frozen'; readonly request: number }
  /** Without a refusal, the process has its holder. */
  | { readonly type: 'held'; readonly request: number; readonly refusal?: ProcessRefusal }
  /** Refuses a `forward`, `files`, `probe` or `freeze`. */
  | {
      readonly type: 'unreachable';
      readonly request: number;
      readonly gone: boolean;
      readonly reason: string;
    }
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

export type Handlers<M extends { readonly type: string }> = {
  readonly [K in M['type']]: (message: M & { readonly type: K }) => void;
};

/** Ignores an unknown type. */
export const handle = <M extends { readonly type: string }, K extends M['type']>(
  handlers: Partial<Handlers<M>>,
  type: K,
  message: M & { readonly type: K },
): void => handlers[type]?.(message);

export interface InstanceReport {
  readonly id: string;
  readonly vitals: Vitals;
  readonly image?: string;
  readonly frozen?: true;
  /** Why processes ended with their holders; reported once. */
  readonly programsEnded?: string;
}

/** Stable. */
export const nameOf = (dataDir: string): string =>
  `sandpool-${createHash('sha256').update(dataDir).digest('hex').slice(0, 12)}`;

const SOCKET_PATH_LIMIT = 107;

export interface SpawnerPaths {
  /** Mode 0700. */
  readonly socketFolder: string;
  readonly socket: string;
  readonly lock: string;
  /** Its names have 8 characters, so that paths are as short as the spawner socket's. */
  readonly forwards: string;
  /** Names as in `forwards`. */
  readonly fileAgents: string;
  readonly holders: string;
  /** Readable by every user. */
  readonly rootfs: string;
  readonly homes: string;
  readonly logs: string;
  /** Readable by every user. */
  readonly images: string;
}

/** A socket whose path would be too long lies in the temporary directory. */
export const pathsOf = (dataDir: string): SpawnerPaths => {
  const near = join(dataDir, 'spawner.sock');
  const name = nameOf(dataDir);
  const fits = Buffer.byteLength(near) <= SOCKET_PATH_LIMIT;
  const socketFolder = fits ? dataDir : join(tmpdir(), name);
  // Host uids of sandboxes can't enter the data folder; Debian mounts /run with noexec.
  const rootfs = process.getuid?.() === 0 ? join('/var/lib', name) : join(dataDir, 'rootfs');
  return {
    socketFolder,
    socket: fits ? near : join(socketFolder, 'spawner.sock'),
    forwards: join(socketFolder, 'fwd'),
    fileAgents: join(socketFolder, 'fil'),
    // Not in the socket folder, which a stop may remove while holders live.
    holders: join(dataDir, 'holders'),
    lock: join(dataDir, 'spawner.lock'),
    rootfs,
    homes: join(tmpdir(), `${name}-homes`),
    logs: join(dataDir, 'logs'),
    images: process.getuid?.() === 0 ? join('/var/lib', `${name}-images`) : join(dataDir, 'images'),
  };
};
