import type { Readable } from 'node:stream';
import type { InstanceId } from '../model/identifiers.ts';

export type FileProblem =
  | 'not-found'
  | 'exists'
  /** The file does not have a requested version, or no longer has it. */
  | 'changed'
  | 'is-a-folder'
  | 'not-a-folder'
  /** A device, a fifo or a socket, which is never opened. */
  | 'not-a-file'
  | 'not-empty'
  /** The sandbox's user lacks permission, or the mount is read-only. */
  | 'denied'
  /** Also inodes or quota; nothing changed. */
  | 'no-space'
  /** A move of a folder to another file system, or into itself. */
  | 'cannot-move'
  | 'busy'
  /** The path or a name in it is too long, or it has too many links. */
  | 'bad-path'
  /** The range begins after the end of the file; `size` is the file's size. */
  | 'bad-range'
  /** `list` did not return this cursor for this path. */
  | 'bad-cursor'
  /** Not a tar, cut short, or with an entry that leads out; `message` names the entry. */
  | 'bad-archive'
  /** The file system keeps no metadata. No file was written. */
  | 'no-metadata'
  /** The sandbox has its maximum of concurrent calls, or no process left for another. */
  | 'too-many'
  /**
   * This driver does not offer files, or this container lacks a prerequisite; `message` names it.
   */
  | 'unsupported';

/** `message` explains it to the client, without host paths. */
export class FileRefused extends Error {
  override readonly name = 'FileRefused';
  readonly problem: FileProblem;
  readonly size: number | undefined;

  constructor(problem: FileProblem, message: string, size?: number) {
    super(message);
    this.problem = problem;
    this.size = size;
  }
}

/**
 * `path` is absolute, in the kernel's bytes, 1 to 4,095 of them. The caller has excluded NULs and
 * parts `..`.
 */
export interface FilePlace {
  readonly id: InstanceId;
  readonly container?: string;
  readonly path: Buffer;
}

export type FileKind = 'file' | 'folder' | 'link' | 'other';

export interface FileVersion {
  readonly size: number;
  /**
   * Nanoseconds since the epoch, as exact as the file system keeps them; at worst whole seconds.
   */
  readonly mtimeNs: bigint;
}

export interface FileStat extends FileVersion {
  readonly kind: FileKind;
  /** Permission bits, including set-uid, set-gid and sticky. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly target?: Buffer;
  /**
   * Absent in the result of `open`. Printable ASCII, at most 4,096 bytes, with 9 bytes of overhead
   * per key. Programs inside the sandbox may have set it.
   */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Both ends are inclusive. */
export type ByteRange =
  | { readonly start: number; readonly end?: number }
  | { readonly suffix: number };

export interface OpenRequest {
  readonly range?: ByteRange;
}

/**
 * `content` has the bytes from `start` to `end` (exclusive) of the opened file, even if its name
 * now refers to another. It fails with OutcomeUnknown if the file became shorter or the link was
 * lost. The caller must read or destroy it.
 */
export interface OpenedFile {
  readonly stat: FileStat;
  readonly start: number;
  readonly end: number;
  readonly content: Readable;
}

export interface WriteRequest {
  /** Defaults to that of the replaced file, else 0o644. */
  readonly mode?: number;
  /** If false, refuses with `exists`, atomically with the creation. */
  readonly overwrite: boolean;
  /**
   * Replaces only a file with one of these versions, else refuses with `changed`; atomic with
   * respect to other calls of `write`.
   */
  readonly ifMatch?: readonly FileVersion[] | 'any';
  /** Created with 0o755. */
  readonly parents: boolean;
  /**
   * Replaces all metadata of the file; absent, removes it. Printable ASCII, keys of 1 to 246 bytes,
   * within the limit of `FileStat`. The caller has checked it.
   */
  readonly metadata?: Readonly<Record<string, string>>;
}

export interface WrittenFile {
  readonly stat: FileStat;
  readonly created: boolean;
}

export interface ListRequest {
  /** 1 lists only the folder's own entries; at most 16. */
  readonly depth: number;
  /** 1 to 10,000. Very long names reduce the number. */
  readonly limit: number;
  /** A `next` that was returned for the same path and depth. */
  readonly cursor?: string;
}

export interface FileEntry {
  /** Relative to the listed folder, without a leading `/`. */
  readonly path: Buffer;
  readonly stat: FileStat;
}

export interface FilePage {
  readonly entries: readonly FileEntry[];
  /** Opaque, at most 8 KiB; absent at the end. */
  readonly next?: string;
}

export interface MoveRequest {
  readonly to: Buffer;
  /** If false, refuses with `exists`, atomically with the move. */
  readonly overwrite: boolean;
}

export interface FolderRequest {
  /** Defaults to 0o755. */
  readonly mode?: number;
  /** Also creates missing parents, and accepts an existing folder; else refuses with `exists`. */
  readonly parents: boolean;
}

export interface WatchRequest {
  /** Also watches subfolders, at most 1,024. */
  readonly recursive: boolean;
}

/**
 * `overflow`: changes were missed, so read the folder again. `gone`: the watched path no longer
 * exists, and no event follows. A rename gives a `removed` and a `created`.
 */
export interface FileEvent {
  readonly type: 'created' | 'changed' | 'removed' | 'attributes' | 'overflow' | 'gone';
  /** Relative to the watched path; empty for the path itself. */
  readonly path: Buffer;
  readonly isFolder: boolean;
}

export interface WrittenTree {
  readonly entries: number;
  readonly bytes: number;
}

/**
 * Every operation runs inside the sandbox as its user, beneath its own root; nothing there leads to
 * the host. Devices, fifos and sockets are never opened, even if a name changes during a call.
 * Calls may take any time; an abort of `signal` ends the work and rejects with its reason, and
 * completed effects stay. Each call rejects with FileRefused; with InstanceGone, ContainerGone or
 * NotJoinable (nothing was done); or with OutcomeUnknown if the link was lost. These methods
 * neither retry, count nor check access. Deliberately left out: owners, writing in place (a reader
 * sees a file old or new, never half), and copying.
 */
export interface SandboxFiles {
  /** If false, each call rejects with `unsupported`. The feature gate `files`. */
  readonly provided: boolean;
  /**
   * For imminent calls, if access takes time here. Changes nothing visible in the instance, never
   * throws, and may be repeated.
   */
  prepare(id: InstanceId): void;
  /** Does not follow the last link. */
  stat(place: FilePlace, signal: AbortSignal): Promise<FileStat>;
  /** Refuses names that are not regular files, and refuses with `bad-range`. */
  open(place: FilePlace, request: OpenRequest, signal: AbortSignal): Promise<OpenedFile>;
  /**
   * Writes a temporary file and renames it once `content` has ended, so that a reader sees the old
   * or the new content. After a failure nothing has changed and nothing is left behind. Follows a
   * link. Destroys `content` if it rejects.
   */
  write(
    place: FilePlace,
    request: WriteRequest & { readonly content: Readable | Buffer },
    signal: AbortSignal,
  ): Promise<WrittenFile>;
  /**
   * A file, a link, an empty folder, or with `recursive` a folder with its contents. Never removes
   * a link's target, nor files of another file system that is mounted below.
   */
  remove(
    place: FilePlace,
    request: { readonly recursive: boolean },
    signal: AbortSignal,
  ): Promise<void>;
  /**
   * Links are entries, and are not followed. The order is arbitrary, but stable while nothing
   * changes. An entry that exists throughout the listing appears once.
   */
  list(place: FilePlace, request: ListRequest, signal: AbortSignal): Promise<FilePage>;
  /**
   * Renames. To another file system, copies a file with its mode, time and metadata, and then
   * removes it: for a moment both exist. Resolves with the stat at the new path.
   */
  move(place: FilePlace, request: MoveRequest, signal: AbortSignal): Promise<FileStat>;
  mkdir(place: FilePlace, request: FolderRequest, signal: AbortSignal): Promise<WrittenFile>;
  /**
   * Begins when the promise resolves; in order, in batches of at most 256. Ends with `gone`, the
   * sandbox's end or an abort. Slow readers get `overflow` in place of dropped events.
   */
  watch(
    place: FilePlace,
    request: WatchRequest,
    signal: AbortSignal,
  ): Promise<AsyncIterable<readonly FileEvent[]>>;
  /**
   * POSIX pax, with entries below `./`. Keeps links as links, and omits devices, fifos, sockets and
   * unreadable files. The stream fails if it is cut off.
   */
  readTree(place: FilePlace, signal: AbortSignal): Promise<Readable>;
  /**
   * Unpacks ustar, pax or GNU tar, not compressed; creates a missing folder. Refuses with
   * `bad-archive` an absolute name, a part `..`, a path through a link of the archive or the
   * sandbox, a hard link out, or a device; earlier entries then stay. Each file is whole. Leaves
   * the permissions of an existing folder.
   */
  writeTree(place: FilePlace, archive: Readable, signal: AbortSignal): Promise<WrittenTree>;
}
