import type { IncomingMessage, ServerResponse } from 'node:http';
import { posix } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import busboy from 'busboy';
import { ClientGone, checkEncoding } from '../../../corridor/request-body.ts';
import { thenLinger } from '../../../corridor/linger.ts';
import { arrivingBytes } from '../../../corridor/streamed-body.ts';
import { isMetadataNotKept } from '../../../../model/file-refusals.ts';
import { invalidArgument, Refusal } from '../../../../model/refusals.ts';
import type { Operations } from '../../../../services/operations.ts';
import type { AddressedSandbox } from '../../traffic/addressed-sandbox.ts';
import { pathAsked } from './files-query.ts';
import { targetAt, type Homes } from './homes.ts';
import { asFile } from './read-file.ts';

export interface WriteFilesDeps {
  readonly operations: Pick<Operations, 'writeFile'>;
  readonly homes: Homes;
}

interface Written {
  readonly path: string;
  readonly name: string;
  readonly type: 'file';
  readonly metadata?: Metadata;
}

const MOST_FILES = 1_000;
const MOST_FIELDS = 100;
/** A form's part may be text without a file name. */
const FILE = 'file';
const MOST_TEXT = 1 << 20;
const OCTETS = /^application\/octet-stream\b/i;
const FORM = /^multipart\/form-data\b/i;

export const writeFiles = async (
  deps: WriteFilesDeps,
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
  sandbox: AddressedSandbox,
): Promise<void> => {
  const path = pathAsked(request);
  const metadata = metadataOf(request);
  const type = request.headers['content-type'] ?? '';
  const written = await thenLinger({ req: request, res: response }, async () => {
    if (FORM.test(type))
      return await writeForm(deps, { request, response, path, metadata }, sandbox);
    if (!OCTETS.test(type))
      throw new Refusal(
        'UNSUPPORTED_MEDIA_TYPE',
        'the body must be multipart/form-data or application/octet-stream',
      );
    if (path === '') throw invalidArgument('path', 'is required');
    const content = contentOf(request, response);
    return [await writeOne(deps, { path, content, metadata }, sandbox)];
  });
  const text = JSON.stringify(written);
  const headers = {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(text),
  };
  response.writeHead(200, headers).end(text);
};

const METADATA = 'x-metadata-';
const KEY = /^[\x20-\x7e]{1,246}$/;
const VALUE = /^[\x20-\x7e]*$/;
/** Each key also counts its prefix in the file system. */
const MOST_METADATA = 4_096;
const BEFORE_KEY = 'user.e2b.'.length;

type Metadata = Readonly<Record<string, string>>;

/** The first header of a name wins. */
const metadataOf = ({ rawHeaders }: IncomingMessage): Metadata | undefined => {
  const kept = new Map<string, string>();
  let bytes = 0;
  // `headersDistinct` throws for `__proto__` in some versions of Node.
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]?.toLowerCase() ?? '';
    const value = rawHeaders[at + 1] ?? '';
    const key = name.slice(METADATA.length);
    if (!name.startsWith(METADATA) || kept.has(key)) continue;
    if (!KEY.test(key)) throw invalidArgument(name, 'must have a key of 1 to 246 bytes');
    if (!VALUE.test(value)) throw invalidArgument(name, 'must be printable ASCII');
    bytes += BEFORE_KEY + key.length + value.length;
    if (bytes > MOST_METADATA)
      throw invalidArgument(
        name,
        `exceeds ${MOST_METADATA} bytes of metadata, with ${BEFORE_KEY} bytes for each key`,
      );
    kept.set(key, value);
  }
  return kept.size === 0 ? undefined : Object.fromEntries(kept);
};

const contentOf = (request: IncomingMessage, response: ServerResponse): Readable => {
  if (request.headers['content-encoding']?.toLowerCase() !== 'gzip') {
    checkEncoding(request);
    return arrivingBytes(request, response);
  }
  const unpacked = createGunzip();
  // The reader sees the error.
  unpacked.on('error', () => {});
  pipeline(arrivingBytes(request, response), unpacked).catch(() => {});
  return unpacked;
};

const writeOne = async (
  { operations, homes }: WriteFilesDeps,
  { path, content, metadata }: FileToWrite,
  sandbox: AddressedSandbox,
): Promise<Written> => {
  const place = await homes.place(sandbox, path);
  const { caller, signal } = sandbox;
  const order = { content, overwrite: 'allowed', parents: true, metadata, signal } as const;
  try {
    const { stat } = await asFile(() =>
      operations.writeFile(caller, targetAt(sandbox, place.path), order),
    );
    return {
      ...{ path: place.shown, name: posix.basename(place.shown), type: 'file' },
      metadata: stat.metadata,
    };
  } catch (error) {
    if (metadata && isMetadataNotKept(error))
      throw invalidArgument(`${METADATA}${Object.keys(metadata)[0]}`, error.message);
    throw malformed(error);
  }
};

interface FileToWrite {
  readonly path: string;
  readonly content: Readable;
  readonly metadata: Metadata | undefined;
}

/** Returns other errors unchanged. */
const malformed = (error: unknown): unknown => {
  if (error instanceof Refusal || error instanceof ClientGone || !(error instanceof Error))
    return error;
  const { code = '' } = error as NodeJS.ErrnoException;
  if (code.startsWith('Z_')) return invalidArgument('body', 'is not gzip, or ends too early');
  return FORM_FAULT.test(error.message) ? invalidArgument('body', error.message) : error;
};

/** Busboy's messages, since its errors lack codes. */
const FORM_FAULT =
  /^(Unexpected end of|Malformed|Multipart: Boundary not found|Unsupported content)/;

interface Form {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  readonly metadata: Metadata | undefined;
}

/** A path in the query applies to the only file; else file names are paths. */
const writeForm = async (
  deps: WriteFilesDeps,
  { request, response, path, metadata }: Form,
  sandbox: AddressedSandbox,
): Promise<readonly Written[]> => {
  const form = openForm(request);
  const written: Written[] = [];
  let failure: unknown;
  let turn: Promise<void> = Promise.resolve();
  const fail = (error: unknown): void => {
    failure ??= error;
    form.destroy();
  };
  const take = (content: Readable, filename: string | undefined): void => {
    content.on('error', () => {});
    // Read no faster than files are written: the form buffers small files.
    form.cork();
    void turn.then(() => form.uncork());
    turn = turn.then(async () => {
      if (failure !== undefined) return void content.destroy();
      try {
        if (path !== '' && written.length > 0)
          throw invalidArgument(
            'path',
            'is only allowed for a single file, and the form has several',
          );
        const to = path === '' ? nameOf(filename) : path;
        written.push(await writeOne(deps, { path: to, content, metadata }, sandbox));
      } catch (error) {
        fail(error);
      }
    });
  };
  form.on('file', (_field, content, { filename }) => take(content, filename));
  form.on('field', (field, text, { valueTruncated }) => {
    if (field !== FILE) return;
    if (valueTruncated)
      fail(invalidArgument('file', `must have a file name, or at most ${MOST_TEXT} bytes`));
    else take(Readable.from([Buffer.from(text)]), undefined);
  });
  const tooMany = (): void => fail(invalidArgument('body', `has more than ${MOST_FILES} files`));
  form.on('filesLimit', tooMany).on('partsLimit', tooMany);
  try {
    await pipeline(contentOf(request, response), form);
  } catch (error) {
    failure ??= malformed(error);
  }
  await turn;
  if (failure !== undefined) throw asError(failure);
  if (written.length === 0) throw invalidArgument('body', 'must have a file');
  return written;
};

const asError = (failure: unknown): Error =>
  failure instanceof Error ? failure : new Error(String(failure));

/** Contrary to the types, a part may lack a file name. */
const nameOf = (filename: string | undefined): string => {
  if (!filename) throw invalidArgument('path', 'is required, because the files have no names');
  return filename;
};

const openForm = ({ headers }: IncomingMessage): busboy.Busboy => {
  try {
    return busboy({
      headers,
      preservePath: true,
      defParamCharset: 'utf8',
      fileHwm: 256 * 1_024,
      limits: {
        files: MOST_FILES,
        fields: MOST_FIELDS,
        parts: MOST_FILES + MOST_FIELDS,
        fieldSize: MOST_TEXT,
      },
    });
  } catch (error) {
    throw malformed(error);
  }
};
