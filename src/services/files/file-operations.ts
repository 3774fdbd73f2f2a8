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

/** `path` is bytes that `filePathOf` accepted. */
export interface FileTarget {
  readonly sandboxId: string;
  readonly container?: string;
  readonly path: Buffer;
}

export interface OpenFileRequest {
  readonly range?: ByteRange;
  /** A file, a folder as an archive, or either. */
  readonly as: 'file' | 'tree' | 'either';
}

export type OpenedContent =
  | ({ readonly kind: 'file' } & OpenedFile)
  | { readonly kind: 'tree'; readonly content: Readable };

export interface WriteFileRequest {
  readonly mode?: number;
  /** For an existing name, `refused` gives 409, and `condition` gives 412 as a failed condition. */
  readonly overwrite: 'allowed' | 'refused' | 'condition';
  readonly ifMatch?: readonly FileVersion[] | 'any';
  readonly parents: boolean;
  readonly metadata?: Readonly<Record<string, string>>;
}

export type Abortable<T> = T & { readonly signal: AbortSignal };

export interface FilesFollow {
  readonly events: (signal: AbortSignal) => AsyncIterable<readonly FileEvent[]>;
  readonly close: () => void;
}

/**
 * In the caller's running sandboxes. Each call counts as activity, and rejects with a Refusal. At
 * most 128 calls of a tenant in progress, 32 of a sandbox; a read counts until its content ends.
 */
export interface FileOperations {
  /** Does not follow the last link. */
  readonly statFile: (caller: Caller, target: FileTarget, signal: AbortSignal) => Promise<FileStat>;
  readonly openFile: (
    caller: Caller,
    target: FileTarget,
    request: Abortable<OpenFileRequest>,
  ) => Promise<OpenedContent>;
  /** A reader of the name sees all of the old or all of the new content. */
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
  readonly watchFiles: (
    caller: Caller,
    target: FileTarget,
    request: { readonly recursive: boolean },
  ) => Promise<FilesFollow>;
}
