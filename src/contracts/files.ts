import type { Readable } from 'node:stream';
import type { InstanceId } from '../model/identifiers.ts';

/** Says why something with a file could not be done: a word for each cause a client can act on. */
export type FileProblem =
  /** There is nothing of that name, or a folder of its path is missing. */
  | 'not-found'
  /** Something of that name is there, and nothing is to be replaced. */
  | 'exists'
  /** Says that what is there is not (or no longer) of a version that was asked for. */
  | 'changed'
  /** A file was asked for, and a folder is there. */
  | 'is-a-folder'
  /** A folder was asked for, or stands in the path, and something else is there. */
  | 'not-a-folder'
  /** A device, a fifo, a socket: never opened. */
  | 'not-a-file'
  /** A folder with something in it, which is not to be removed with it. */
  | 'not-empty'
  /** The sandbox's user may not, or the place is mounted read-only. */
  | 'denied'
  /** No room, no inodes, or no quota left; nothing was changed. */
  | 'no-space'
  /** A move to another file system, or of a folder into itself. */
  | 'cannot-move'
  /** It is in use, such as a mount point or a program that runs. */
  | 'busy'
  /** A path or a name in it is too long, or too many links stand in it. */
  | 'bad-path'
  /** The range begins behind the end of the file; `size` says where that is. */
  | 'bad-range'
  /** The cursor is none that `list` gave for this path. */
  | 'bad-cursor'
  /** The archive is no tar, is cut short, or has an entry that leads out; `message` names it. */
  | 'bad-archive'
  /** Metadata was given, and the place keeps none; no file was written. */
  | 'no-metadata'
  /** As many are at work in this sandbox as may be, or it has no process left for it. */
  | 'too-many'
  /** This driver has no files, or this container not what they need; `message` says what. */
  | 'unsupported';

/** A file's operation was refused; `message` says why for whoever asked, without host paths. */
export class FileRefused extends Error {
  override readonly name = 'FileRefused';
  readonly problem: FileProblem;
  /** Bytes of the file, with `bad-range`. */
  readonly size: number | undefined;

  constructor(problem: FileProblem, message: string, size?: number) {
    super(message);
    this.problem = problem;
    this.size = size;
  }
}

/**
 * A name in a sandbox. `path` is bytes, as the kernel has it: absolute, 1 to 4,095 of them, without
 * NUL and without a part `..`, which the caller has checked.
 */
export interface FilePlace {
  readonly id: InstanceId;
  /** Absent: the first container. */
  readonly container?: string;
  readonly path: Buffer;
}

export type FileKind = 'file' | 'folder' | 'link' | 'other';

/** Tells two states of a file apart. */
export interface FileVersion {
  readonly size: number;
  /** Nanoseconds since the epoch; as exact as the place keeps them, at worst whole seconds. */
  readonly mtimeNs: bigint;
}

export interface FileStat extends FileVersion {
  readonly kind: FileKind;
  /** Permission bits, such as 0o644; with set-uid, set-gid and sticky. */
  readonly mode: number;
  /** As the sandbox sees them. */
  readonly uid: number;
  readonly gid: number;
  /** Says what a link says, bytes; of a link alone. */
  readonly target?: Buffer;
  /**
   * Is kept with a file (not with a folder, a link or what `open` answers), and printable ASCII;
   * at most 4,096 bytes, of which each key takes 9. Programs inside may have set it.
   */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Bytes from `start` to `end`, both counted; or the last `suffix`. */
export type ByteRange =
  | { readonly start: number; readonly end?: number }
  | { readonly suffix: number };

export interface OpenRequest {
  readonly range?: ByteRange;
}

/**
 * A file that is open for reading. `content` has the bytes `start` to `end` (not counted) of the
 * file that was opened, also when its name means another one by now, and obeys back-pressure; it
 * fails with OutcomeUnknown where the file became shorter, or the way to it was lost. Whoever got
 * it reads it or destroys it.
 */
export interface OpenedFile {
  readonly stat: FileStat;
  readonly start: number;
  readonly end: number;
  readonly content: Readable;
}

export interface WriteRequest {
  /** Permission bits. Absent: those of the file that is replaced, else 0o644. */
  readonly mode?: number;
  /** False refuses with `exists` where something is there, in one step with making it. */
  readonly overwrite: boolean;
  /**
   * Replaces only one of these versions, looked at in one step with the renaming as far as other
   * calls of `write` go; else `changed`. `any`: whatever is there, but something.
   */
  readonly ifMatch?: readonly FileVersion[] | 'any';
  /** Makes the folders that are missing above it, with 0o755. */
  readonly parents: boolean;
  /**
   * Replaces all that is kept with the file, as its absence does. Printable ASCII, keys of 1 to 246
   * bytes, and the bound of `FileStat`, which the caller has checked.
   */
  readonly metadata?: Readonly<Record<string, string>>;
}

export interface WrittenFile {
  readonly stat: FileStat;
  /** Nothing was there before. */
  readonly created: boolean;
}

export interface ListRequest {
  /** 1: what is in the folder itself; at most 16. */
  readonly depth: number;
  /** Entries at most, 1 to 10,000; of very long names there may be fewer. */
  readonly limit: number;
  /** Where to go on: a `next` that was answered for the same path and depth. */
  readonly cursor?: string;
}

export interface FileEntry {
  /** Bytes; below the folder that was listed, without `/` at the front. */
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
  /** False refuses with `exists` where something is there, in one step with the move. */
  readonly overwrite: boolean;
}

export interface FolderRequest {
  /** Absent: 0o755. */
  readonly mode?: number;
  /** Makes those above too, and takes a folder that is there; else `exists`. */
  readonly parents: boolean;
}

export interface WatchRequest {
  /** Lists what is below as well, at most 1,024 folders. */
  readonly recursive: boolean;
}

/**
 * `overflow`: changes were missed, look anew; it has no path. `gone`: what was watched is no more,
 * and nothing follows. Of a file that was renamed there are a `removed` and a `created`.
 */
export interface FileEvent {
  readonly type: 'created' | 'changed' | 'removed' | 'attributes' | 'overflow' | 'gone';
  /** Bytes; below the folder that is watched, empty for itself. */
  readonly path: Buffer;
  readonly isFolder: boolean;
}

export interface WrittenTree {
  /** Entries of the archive that were made. */
  readonly entries: number;
  readonly bytes: number;
}

/**
 * The files of running instances. Everything is done inside the sandbox as its user, beneath its
 * own root: links are followed there, and nothing in a sandbox leads to the host. Devices, fifos
 * and sockets are never opened, whoever changes a name at which moment. It takes as long as it
 * takes: whoever asks sets deadlines by `signal`, whose abort ends the work and rejects with its
 * reason; what had taken effect by then stays. What nobody reads or writes waits, and costs next to
 * nothing.
 *
 * Each call rejects with FileRefused, or with InstanceGone, ContainerGone, NotJoinable (nothing was
 * done), or OutcomeUnknown where the way was lost while it was at work: it may have taken effect,
 * in whole. Nothing here retries, counts or asks who may.
 *
 * Deliberately absent: owners (a file belongs to the sandbox's user), appending and writing in
 * place (a reader sees a file old or new, never half), and copying (two calls).
 */
export interface SandboxFiles {
  /** False: each call rejects with `unsupported`. The feature gate `files`. */
  readonly provided: boolean;
  /**
   * Has the way to an instance's files made ready for calls that come at once, as far as that takes
   * time here. Changes nothing in it that anybody would see; never throws, and may be repeated.
   */
  prepare(id: InstanceId): void;
  /** The last link is not followed. */
  stat(place: FilePlace, signal: AbortSignal): Promise<FileStat>;
  /** Refuses what is no regular file, with `bad-range` a range that begins behind its end. */
  open(place: FilePlace, request: OpenRequest, signal: AbortSignal): Promise<OpenedFile>;
  /**
   * Writes beside and renames once `content` has ended: a reader of the name sees what was there
   * before or all of what is new. Where `content` fails, or the caller or the way dies, nothing is
   * changed and nothing is left behind. A link is followed, and what it leads to is replaced. Does
   * not read `content` further once it has settled, and destroys it where it rejects.
   */
  write(
    place: FilePlace,
    request: WriteRequest & { readonly content: Readable | Buffer },
    signal: AbortSignal,
  ): Promise<WrittenFile>;
  /**
   * Removes a file, a link, an empty folder, or with `recursive` all that is in it; never what a
   * link leads to, and nothing on another file system that is mounted below.
   */
  remove(
    place: FilePlace,
    request: { readonly recursive: boolean },
    signal: AbortSignal,
  ): Promise<void>;
  /**
   * Lists a folder; links are entries, and not followed. In no order that means anything, but the
   * same for as long as nothing changes; what is there all the while is given once.
   */
  list(place: FilePlace, request: ListRequest, signal: AbortSignal): Promise<FilePage>;
  /** Renames, within one file system. Resolves with what is at the new place. */
  move(place: FilePlace, request: MoveRequest, signal: AbortSignal): Promise<FileStat>;
  /** Makes a folder. */
  mkdir(place: FilePlace, request: FolderRequest, signal: AbortSignal): Promise<WrittenFile>;
  /**
   * Changes from when the promise resolves, in order; batches of at most 256, until `gone`, the
   * sandbox's end or an abort. Slow readers get `overflow` in place of what does not fit.
   */
  watch(
    place: FilePlace,
    request: WatchRequest,
    signal: AbortSignal,
  ): Promise<AsyncIterable<readonly FileEvent[]>>;
  /**
   * A folder as a tar stream (POSIX pax): its own entries below `./`, links as links, devices,
   * fifos and sockets left out, files that can't be read too. It fails where something is cut off.
   */
  readTree(place: FilePlace, signal: AbortSignal): Promise<Readable>;
  /**
   * Unpacks a tar stream (ustar, pax or GNU; not compressed) into a folder, which is made where it
   * is missing. Files, folders, links and hard links to what the archive itself made; each file is
   * renamed into its place, and a folder that is there keeps its permissions. An absolute name, a
   * part `..`, a path through a link that the archive or the sandbox made, a hard link out, a
   * device: `bad-archive`, and what came before it stays. Where the archive is cut short, or
   * something fails, what came before may be there or not, each file whole.
   */
  writeTree(place: FilePlace, archive: Readable, signal: AbortSignal): Promise<WrittenTree>;
}
