import type { Readable } from 'node:stream';
import type {
  ByteRange,
  FileEvent,
  FilePage,
  FileStat,
  FileVersion,
  FolderRequest,
  ListRequest,
  MoveRequest,
  OpenedFile,
  WrittenFile,
  WrittenTree,
} from '../../contracts/files.ts';
import type { Caller } from '../../model/tenant.ts';

/** Names a file of a sandbox: `path` is bytes that `filePathOf` has let pass. */
export interface FileTarget {
  readonly sandboxId: string;
  readonly container?: string;
  readonly path: Buffer;
}

export interface OpenFileRequest {
  readonly range?: ByteRange;
  /** Says what is wanted: a file, a folder as an archive, or whichever is there. */
  readonly as: 'file' | 'tree' | 'either';
}

export type OpenedContent =
  | ({ readonly kind: 'file' } & OpenedFile)
  | { readonly kind: 'tree'; readonly content: Readable };

export interface WriteFileRequest {
  readonly mode?: number;
  /** `refused`: 409 where something is there; `condition`: 412, as a condition that failed. */
  readonly overwrite: 'allowed' | 'refused' | 'condition';
  readonly ifMatch?: readonly FileVersion[] | 'any';
  readonly parents: boolean;
  /** As the contract of files bounds it. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** A request whose work ends with the signal. */
export type Abortable<T> = T & { readonly signal: AbortSignal };

export interface FilesFollow {
  readonly events: (signal: AbortSignal) => AsyncIterable<readonly FileEvent[]>;
  readonly close: () => void;
}

/**
 * The use cases of files in the caller's running sandboxes. Each is activity of the sandbox, and
 * rejects with a Refusal. A tenant has at most 128 of them under way, a sandbox 32; content that is
 * read counts until it is over.
 */
export interface FileOperations {
  /** Says what is at the place; the last link is not followed. */
  readonly statFile: (caller: Caller, target: FileTarget, signal: AbortSignal) => Promise<FileStat>;
  readonly openFile: (
    caller: Caller,
    target: FileTarget,
    request: Abortable<OpenFileRequest>,
  ) => Promise<OpenedContent>;
  /** A reader of the name sees what was there before, or all of what is new. */
  readonly writeFile: (
    caller: Caller,
    target: FileTarget,
    request: Abortable<WriteFileRequest & { readonly content: Readable }>,
  ) => Promise<WrittenFile>;
  readonly unpackFiles: (
    caller: Caller,
    target: FileTarget,
    request: Abortable<{ readonly archive: Readable }>,
  ) => Promise<WrittenTree>;
  readonly removeFile: (
    caller: Caller,
    target: FileTarget,
    request: Abortable<{ readonly recursive: boolean }>,
  ) => Promise<void>;
  readonly listFiles: (
    caller: Caller,
    target: FileTarget,
    request: Abortable<ListRequest>,
  ) => Promise<FilePage>;
  readonly moveFile: (
    caller: Caller,
    target: FileTarget,
    request: Abortable<MoveRequest>,
  ) => Promise<FileStat>;
  readonly makeFolder: (
    caller: Caller,
    target: FileTarget,
    request: Abortable<FolderRequest>,
  ) => Promise<WrittenFile>;
  /** Follows what changes from now on; `close` gives its place back. */
  readonly watchFiles: (
    caller: Caller,
    target: FileTarget,
    request: { readonly recursive: boolean },
  ) => Promise<FilesFollow>;
}
