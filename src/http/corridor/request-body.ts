import type { IncomingMessage, ServerResponse } from 'node:http';
import { invalidArgument, Refusal, unavailable } from '../../model/refusals.ts';
import type { ArrivingBodies } from '../limits/memory.ts';
import { lingerAfter } from './linger.ts';
import { parseStrictJson } from './strict-json.ts';

const MAX_BODY_BYTES = 1_048_576;

/** Send no answer. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

/**
 * An absent body is `{}`. Refuses one that is too large, encoded, not declared as JSON, or against
 * the rules of strict-json.
 */
export const readJsonBody = async (
  request: IncomingMessage,
  response: ServerResponse,
  { arriving, turn, mergePatch = false }: BodyTerms,
): Promise<JsonBody> => {
  if (!hasBody(request)) return { value: {}, bytes: NO_BYTES };
  if (Number(request.headers['content-length'] ?? 0) > MAX_BODY_BYTES)
    throw tooLarge(request, response);
  checkEncoding(request);
  if (awaitsContinue.has(request)) response.writeContinue();
  const bytes = await readBytes(request, response, { arriving });
  const awaited = turn(bytes.length);
  if (awaited) await awaited;
  if (bytes.length === 0) return { value: {}, bytes };
  checkContentType(request, mergePatch);
  return { value: parseStrictJson(bytes), bytes };
};

const MAX_FORM_BYTES = 65_536;
const FORM_TYPE = /^application\/x-www-form-urlencoded *(; *charset="?utf-?8"?)?$/i;

/** Refuses other content types, repeated fields and too large forms. */
export const readForm = async (
  request: IncomingMessage,
  response: ServerResponse,
  arriving: ArrivingBodies,
): Promise<ReadonlyMap<string, string>> => {
  if (Number(request.headers['content-length'] ?? 0) > MAX_BODY_BYTES)
    throw tooLarge(request, response);
  checkEncoding(request);
  if (!FORM_TYPE.test(request.headers['content-type'] ?? ''))
    throw unsupported('the body must be application/x-www-form-urlencoded in UTF-8');
  if (awaitsContinue.has(request)) response.writeContinue();
  const bytes = await readBytes(request, response, { arriving });
  if (bytes.length > MAX_FORM_BYTES)
    throw new Refusal('PAYLOAD_TOO_LARGE', `the form is larger than ${MAX_FORM_BYTES} bytes`);
  const fields = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(bytes.toString('utf8'))) {
    if (fields.has(name)) throw invalidArgument(name.slice(0, 64), 'is given twice');
    fields.set(name, value);
  }
  return fields;
};

/** Refuses an encoded or too large body. */
export const readWhole = async (
  request: IncomingMessage,
  response: ServerResponse,
  { arriving, mostBytes = MAX_BODY_BYTES }: WholeTerms,
): Promise<Buffer> => {
  if (!hasBody(request)) return NO_BYTES;
  if (Number(request.headers['content-length'] ?? 0) > mostBytes)
    throw tooLarge(request, response, mostBytes);
  checkEncoding(request);
  if (awaitsContinue.has(request)) response.writeContinue();
  return await readBytes(request, response, { arriving, mostBytes });
};

interface WholeTerms {
  readonly arriving: ArrivingBodies;
  readonly mostBytes?: number;
}

export interface BodyTerms {
  readonly arriving: ArrivingBodies;
  /** Called before the complete body is parsed. */
  readonly turn: (bytes: number) => Promise<void> | undefined;
  /** RFC 7396 */
  readonly mergePatch?: boolean;
}

export interface JsonBody {
  readonly value: unknown;
  readonly bytes: Buffer;
}

const NO_BYTES = Buffer.alloc(0);

/** Their clients send no body before `100 Continue`. */
export const awaitsContinue = new WeakSet<IncomingMessage>();

export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined ||
  (headers['content-length'] !== undefined && headers['content-length'] !== '0');

/** Transfer encodings other than chunked are refused too. */
export const checkEncoding = ({ headers }: IncomingMessage): void => {
  const content = headers['content-encoding'];
  if (content !== undefined && content.toLowerCase() !== 'identity')
    throw unsupported('the body must not be encoded (Content-Encoding)');
  const transfer = headers['transfer-encoding'];
  if (transfer !== undefined && transfer.toLowerCase() !== 'chunked')
    throw unsupported('the body must not be encoded (Transfer-Encoding)');
};

const MERGE_PATCH_TYPE = /^application\/merge-patch\+json[ \t]*(;.*)?$/i;
const JSON_TYPE = /^application\/json[ \t]*(;[ \t]*charset="?utf-?8"?[ \t]*)?;?$/i;

const checkContentType = ({ headers }: IncomingMessage, mergePatch: boolean): void => {
  if (mergePatch && MERGE_PATCH_TYPE.test(headers['content-type'] ?? '')) return;
  if (!JSON_TYPE.test(headers['content-type'] ?? ''))
    throw unsupported('the body must be application/json in UTF-8');
};

const readBytes = (
  request: IncomingMessage,
  response: ServerResponse,
  { arriving, mostBytes = MAX_BODY_BYTES }: WholeTerms,
): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const settle = (): void => {
      arriving.letGo(held);
      request.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone);
    };
    const held = {
      refuse: (): void => {
        settle();
        lingerAfter(request, response);
        reject(unavailable('too many bodies are arriving too slowly; try again'));
      },
    };
    const declared = Number(request.headers['content-length'] ?? Number.NaN);
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (size <= mostBytes) {
        chunks.push(chunk);
        if (size !== declared) arriving.hold(held, chunk.length);
        return;
      }
      settle();
      reject(tooLarge(request, response, mostBytes));
    };
    const onEnd = (): void => {
      settle();
      resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, size));
    };
    const onGone = (): void => {
      settle();
      reject(new ClientGone('the body ended too early'));
    };
    request.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
  });

const tooLarge = (
  request: IncomingMessage,
  response: ServerResponse,
  mostBytes = MAX_BODY_BYTES,
): Refusal => {
  lingerAfter(request, response);
  return new Refusal('PAYLOAD_TOO_LARGE', `the body is larger than ${mostBytes} bytes`);
};

const unsupported = (problem: string): Refusal => new Refusal('UNSUPPORTED_MEDIA_TYPE', problem);
