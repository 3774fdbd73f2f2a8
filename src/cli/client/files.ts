import type { Answer, Query } from './operation-request.ts';
import type { CallOptions, SandpoolClient } from './sandpool-client.ts';
import type { Download } from './http-exchange.ts';

const BYTES = 'application/octet-stream';
const TAR = 'application/x-tar';

/** Absolute, without `..`; bytes if the name is not UTF-8. */
type FilePath = string | Buffer;

export interface FilePlace extends CallOptions {
  readonly sandboxId: string;
  readonly path: FilePath;
}

/** The receiver reads `bytes` or calls `close`. */
export interface ReadContent extends Pick<Download, 'bytes' | 'close'> {
  readonly kind: 'file' | 'folder';
  /** Only for files. */
  readonly size: number | undefined;
  /** Only for files. */
  readonly mode: number | undefined;
}

export const readContent = async (
  api: SandpoolClient,
  { sandboxId, path, ...options }: FilePlace,
): Promise<ReadContent> => {
  const input = { params: { sandboxId }, query: pathQuery(path), ...options };
  const { headers, bytes, close } = await api.download('readFile', `${BYTES}, ${TAR}`, input);
  const mode = headers['x-file-mode'];
  const size = headers['content-length'];
  return {
    kind: headers['content-type'] === TAR ? 'folder' : 'file',
    size: size === undefined ? undefined : Number(size),
    mode: typeof mode === 'string' ? Number.parseInt(mode, 8) : undefined,
    bytes,
    close,
  };
};

/** Atomic; a partial upload changes nothing. */
export const writeFile = async (
  api: SandpoolClient,
  { sandboxId, path, ...options }: FilePlace,
  {
    content,
    mode,
    ...more
  }: {
    readonly content: AsyncIterable<Buffer>;
    /** Default: those of the replaced file, otherwise 0o644. */
    readonly mode?: number;
  } & Pick<Query<'writeFile'>, 'overwrite' | 'parents'>,
): Promise<Answer<'writeFile'>['file']> => {
  const query = { ...pathQuery(path), ...more, mode: mode?.toString(8).padStart(3, '0') };
  const input = { params: { sandboxId }, query, ...options };
  return (await api.upload('writeFile', input, { content, contentType: BYTES })).file;
};

/** Entries before a cut in the archive stay. */
export const unpackArchive = async (
  api: SandpoolClient,
  { sandboxId, path, ...options }: FilePlace,
  content: AsyncIterable<Buffer>,
): Promise<Answer<'writeFile'>['archive']> => {
  const input = { params: { sandboxId }, query: pathQuery(path), ...options };
  return (await api.upload('writeFile', input, { content, contentType: TAR })).archive;
};

const pathQuery = (path: FilePath): Pick<Query<'readFile'>, 'path' | 'base64'> =>
  typeof path === 'string' ? { path } : { path: path.toString('base64'), base64: true };
