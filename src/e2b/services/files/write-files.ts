import type { IncomingMessage, ServerResponse } from 'node:http';
import { posix } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import busboy from 'busboy';
import { ClientGone, checkEncoding } from '../../../http/router/request-body.ts';
import { thenLinger } from '../../../http/router/linger.ts';
import { arrivingBytes } from '../../../http/router/streamed-body.ts';
import { invalidArgument, Refusal } from '../../../model/refusals.ts';
import type { Operations } from '../../../operations/operations.ts';
import type { AddressedSandbox } from '../../traffic/addressed-sandbox.ts';
import { pathAsked } from './files-query.ts';
import { targetAt, type Homes } from './homes.ts';
import { asFile } from './read-file.ts';

export interface WriteFilesDeps {
  readonly operations: Pick<Operations, 'writeFile'>;
  readonly homes: Homes;
}

/** A file as the SDKs are told of it. */
interface Written {
  readonly path: string;
  readonly name: string;
  readonly type: 'file';
}

const MOST_FILES = 1_000;
/** Fields of a form beside its files, which are not heeded. */
const MOST_FIELDS = 100;
/** Names the part of a form that is a file, also where pages send a text without a file name. */
const FILE = 'file';
const MOST_TEXT = 1 << 20;
const OCTETS = /^application\/octet-stream\b/i;
const FORM = /^multipart\/form-data\b/i;

/** Answers `POST /files`: writes the body to a file, or each part of a form to its own. */
export const writeFiles = async (
  deps: WriteFilesDeps,
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
  sandbox: AddressedSandbox,
): Promise<void> => {
  const path = pathAsked(request);
  refuseMetadata(request);
  const type = request.headers['content-type'] ?? '';
  const written = await thenLinger({ req: request, res: response }, async () => {
    if (FORM.test(type)) return await writeForm(deps, { request, response, path }, sandbox);
    if (!OCTETS.test(type))
      throw new Refusal(
        'UNSUPPORTED_MEDIA_TYPE',
        'the body must be multipart/form-data or application/octet-stream',
      );
    if (path === '') throw invalidArgument('path', 'is required');
    const content = contentOf(request, response);
    return [await writeOne(deps, { path, content }, sandbox)];
  });
  const text = JSON.stringify(written);
  const headers = {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(text),
  };
  response.writeHead(200, headers).end(text);
};

const NO_METADATA =
  'files have no metadata here; write the file without it, and keep the metadata in another file';

const refuseMetadata = ({ headers }: IncomingMessage): void => {
  const name = Object.keys(headers).find((each) => each.startsWith('x-metadata-'));
  if (name !== undefined) throw invalidArgument(name, NO_METADATA);
};

/** Returns the bytes of the body, unpacked where it is gzip. */
const contentOf = (request: IncomingMessage, response: ServerResponse): Readable => {
  if (request.headers['content-encoding']?.toLowerCase() !== 'gzip') {
    checkEncoding(request);
    return arrivingBytes(request, response);
  }
  const unpacked = createGunzip();
  // What it fails with, its reader sees.
  unpacked.on('error', () => {});
  pipeline(arrivingBytes(request, response), unpacked).catch(() => {});
  return unpacked;
};

const writeOne = async (
  { operations, homes }: WriteFilesDeps,
  { path, content }: { readonly path: string; readonly content: Readable },
  sandbox: AddressedSandbox,
): Promise<Written> => {
  const place = await homes.place(sandbox, path);
  try {
    await asFile(() =>
      operations.writeFile(
        sandbox.caller,
        targetAt(sandbox, place.path),
        { content, overwrite: 'allowed', parents: true },
        sandbox.signal,
      ),
    );
  } catch (error) {
    throw malformed(error);
  }
  return { path: place.shown, name: posix.basename(place.shown), type: 'file' };
};

/** Returns the refusal of a body that is no form, or no gzip; any other error as it is. */
const malformed = (error: unknown): unknown => {
  if (error instanceof Refusal || error instanceof ClientGone || !(error instanceof Error))
    return error;
  const { code = '' } = error as NodeJS.ErrnoException;
  if (code.startsWith('Z_')) return invalidArgument('body', 'is not gzip, or cut short');
  return FORM_FAULT.test(error.message) ? invalidArgument('body', error.message) : error;
};

/** How busboy says that a form is none; it has no codes. */
const FORM_FAULT =
  /^(Unexpected end of|Malformed|Multipart: Boundary not found|Unsupported content)/;

interface Form {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
}

/**
 * Writes the parts of a form one after another. A path in the query is that of the one file there
 * is; else each part's file name is its path.
 */
const writeForm = async (
  deps: WriteFilesDeps,
  { request, response, path }: Form,
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
    // Reads on no faster than files are written: the form keeps whole those that are small.
    form.cork();
    void turn.then(() => form.uncork());
    turn = turn.then(async () => {
      if (failure !== undefined) return void content.destroy();
      try {
        if (path !== '' && written.length > 0)
          throw invalidArgument('path', 'is for one file, and the form has more');
        const to = path === '' ? nameOf(filename) : path;
        written.push(await writeOne(deps, { path: to, content }, sandbox));
      } catch (error) {
        fail(error);
      }
    });
  };
  form.on('file', (_field, content, { filename }) => take(content, filename));
  form.on('field', (field, text, { valueTruncated }) => {
    if (field !== FILE) return;
    if (valueTruncated) fail(invalidArgument('file', `has no name, and over ${MOST_TEXT} bytes`));
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
  if (written.length === 0) throw invalidArgument('body', 'has no file');
  return written;
};

const asError = (failure: unknown): Error =>
  failure instanceof Error ? failure : new Error(String(failure));

/** Returns the path of a part; one without a file name has none, whatever the types say. */
const nameOf = (filename: string | undefined): string => {
  if (!filename) throw invalidArgument('path', 'is required, as each file has no name');
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
