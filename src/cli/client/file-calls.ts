import type { Download, Exchange, HttpExchanges } from './http-exchange.ts';
import {
  operationRequest,
  type CallOptions,
  type OperationAnswer,
  type OperationId,
  type OperationInput,
} from './operation-request.ts';

type Call = <K extends OperationId>(
  id: K,
  input: OperationInput<K>,
  options?: CallOptions & { readonly deadlineMs?: number },
) => Promise<OperationAnswer<K>>;

const BYTES = 'application/octet-stream';
const TAR = 'application/x-tar';
/** A stream that stands still for so long is given up; the service does so a little earlier. */
const SILENCE_MS = 90_000;
/** A tree may have very many entries. */
const REMOVAL_MS = 600_000;

/** An absolute path in a sandbox, without a part `..`; bytes for a name that is no UTF-8. */
export type FilePath = string | Buffer;
export type FileInfo = NonNullable<OperationAnswer<'writeFile'>['file']>;
export type FileList = OperationAnswer<'listFiles'>;
export type UnpackedArchive = NonNullable<OperationAnswer<'writeFile'>['archive']>;

/**
 * Holds a file, or a folder as a tar archive, while it is being read. Whoever has it reads `bytes`,
 * which throw ConnectionFailed where they are cut off, or calls `close`.
 */
export interface ReadContent extends Pick<Download, 'bytes' | 'close'> {
  readonly kind: 'file' | 'folder';
  /** Bytes, known of a file alone. */
  readonly size: number | undefined;
  /** Permission bits, known of a file alone. */
  readonly mode: number | undefined;
}

export interface WriteOptions extends CallOptions {
  /** Permission bits. Absent: those of the file that is replaced, else 0o644. */
  readonly mode?: number;
  /** False refuses where something of that name is there. */
  readonly overwrite?: boolean;
  /** Makes the folders that are missing above it. */
  readonly parents?: boolean;
}

/** Calls for the files of a Running sandbox. Streams go no faster than they are taken. */
export class FileCalls {
  readonly #call: Call;
  readonly #exchanges: HttpExchanges;

  constructor(call: Call, exchanges: HttpExchanges) {
    this.#call = call;
    this.#exchanges = exchanges;
  }

  /** Opens a file, a folder as an archive, or whichever is there. */
  async read(
    sandboxId: string,
    path: FilePath,
    { as, signal }: CallOptions & { readonly as: readonly ReadContent['kind'][] },
  ): Promise<ReadContent> {
    const request = operationRequest('readFile', { params: { sandboxId }, query: queryOf(path) });
    const accept = as.map((kind) => (kind === 'folder' ? TAR : BYTES)).join(', ');
    const { headers, bytes, close } = await this.#exchanges.download({
      ...request,
      ...inTime(signal),
      accept,
    });
    const mode = headers['x-file-mode'];
    const size = headers['content-length'];
    return {
      kind: headers['content-type'] === TAR ? 'folder' : 'file',
      size: size === undefined ? undefined : Number(size),
      mode: typeof mode === 'string' ? Number.parseInt(mode, 8) : undefined,
      bytes,
      close,
    };
  }

  /** Replaces the file at once when all of the content has arrived; else nothing is changed. */
  async write(
    sandboxId: string,
    { path, content }: { readonly path: FilePath; readonly content: AsyncIterable<Buffer> },
    { mode, overwrite, parents, signal }: WriteOptions = {},
  ): Promise<FileInfo | undefined> {
    const query = {
      ...queryOf(path),
      mode: mode?.toString(8).padStart(3, '0'),
      overwrite,
      parents,
    };
    const request = operationRequest('writeFile', { params: { sandboxId }, query });
    const body = { ...inTime(signal), content, contentType: BYTES };
    const answer = await this.#exchanges.upload({ ...request, ...body });
    return (answer as OperationAnswer<'writeFile'>).file;
  }

  /** Unpacks a tar archive into a folder. Of one that is cut off, what came before stays. */
  async unpack(
    sandboxId: string,
    { folder, archive }: { readonly folder: FilePath; readonly archive: AsyncIterable<Buffer> },
    { signal }: CallOptions = {},
  ): Promise<UnpackedArchive | undefined> {
    const query = queryOf(folder);
    const request = operationRequest('writeFile', { params: { sandboxId }, query });
    const body = { ...inTime(signal), content: archive, contentType: TAR };
    const answer = await this.#exchanges.upload({ ...request, ...body });
    return (answer as OperationAnswer<'writeFile'>).archive;
  }

  /** Lists a page of a folder; links are shown, and not followed. */
  async list(
    sandboxId: string,
    folder: FilePath,
    {
      signal,
      ...page
    }: CallOptions & {
      readonly depth?: number;
      readonly limit?: number;
      readonly cursor?: string;
    } = {},
  ): Promise<FileList> {
    const query = { ...queryOf(folder), ...page } as NonNullable<
      OperationInput<'listFiles'>['query']
    >;
    return await this.#call('listFiles', { params: { sandboxId }, query }, inTime(signal));
  }

  /** Removes a file, a link or an empty folder; with `recursive` all that is in it. */
  async remove(
    sandboxId: string,
    path: FilePath,
    { recursive, signal }: CallOptions & { readonly recursive?: boolean } = {},
  ): Promise<void> {
    const query = { ...queryOf(path), recursive: recursive || undefined };
    const options = { ...inTime(signal), deadlineMs: REMOVAL_MS };
    await this.#call('removeFile', { params: { sandboxId }, query }, options);
  }

  /** Renames, within one file system; refuses where something is there without `overwrite`. */
  async move(
    sandboxId: string,
    { from, to }: { readonly from: string; readonly to: string },
    { overwrite = false, ...options }: CallOptions & { readonly overwrite?: boolean } = {},
  ): Promise<FileInfo> {
    const body = { from, to, overwrite };
    return (await this.#call('moveFile', { params: { sandboxId }, body }, options)).file;
  }

  /** Makes a folder; with `parents` those above too, and one that is there is taken. */
  async mkdir(
    sandboxId: string,
    path: string,
    { parents = false, mode, ...options }: Omit<WriteOptions, 'overwrite'> = {},
  ): Promise<FileInfo> {
    const body = { path, parents, mode: mode?.toString(8).padStart(3, '0') };
    return (await this.#call('makeFolder', { params: { sandboxId }, body }, options)).file;
  }
}

const queryOf = (path: FilePath): { readonly path: string; readonly base64?: true } =>
  typeof path === 'string' ? { path } : { path: path.toString('base64'), base64: true };

const inTime = (signal: AbortSignal | undefined): Pick<Exchange, 'deadlineMs'> & CallOptions => ({
  deadlineMs: SILENCE_MS,
  signal,
});
