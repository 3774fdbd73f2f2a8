import type { IncomingMessage } from 'node:http';
import {
  create,
  fromJsonString,
  toJsonString,
  type DescMessage,
  type DescMethodServerStreaming,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf';
import type { ServedOperation } from '../conduct.ts';
import { OPERATIONS, type Call, type FramesToCome } from './call-guard.ts';
import { frameOf, onlyMessageOf } from './frames.ts';

export interface StreamTerms {
  readonly call: Call;
  /** In ms; undefined without a deadline. */
  readonly leftMs: () => number | undefined;
  readonly header: (name: string) => string | null;
}

export interface PlainOpening {
  readonly operation: ServedOperation;
  readonly timeoutMs: number | undefined;
  readonly open: (
    terms: StreamTerms,
  ) => Promise<{ readonly first: Buffer; readonly rest: FramesToCome }>;
}

export interface PlainStream {
  readonly path: string;
  /** Undefined for forms that SDKs don't send: the library handles them. */
  readonly opening: (request: IncomingMessage, body: Buffer) => PlainOpening | undefined;
}

export const TIMEOUT = 'connect-timeout-ms';
export const MOST_MS = 2 ** 31 - 1;
export const STREAM_HEAD = { 'content-type': 'application/connect+json' };
/** As the library. */
const READING = { ignoreUnknownFields: true };

export const plainStream = <I extends DescMessage, O extends DescMessage>(
  { parent, name, input, output }: DescMethodServerStreaming<I, O>,
  open: (
    message: MessageShape<I>,
    terms: StreamTerms,
  ) => Promise<{ readonly first: MessageInitShape<O>; readonly rest: FramesToCome }>,
): PlainStream => ({
  path: `/${parent.typeName}/${name}`,
  opening: (request, body) => {
    const operation = OPERATIONS[name];
    const text = isPlain(request) ? onlyMessageOf(body) : undefined;
    if (operation === undefined || text === undefined) return undefined;
    let message: MessageShape<I>;
    try {
      message = fromJsonString(input, text, READING);
    } catch {
      return undefined;
    }
    const timeout = request.headers[TIMEOUT];
    return {
      operation,
      timeoutMs: timeout === undefined ? undefined : Number(timeout),
      open: async (terms) => {
        const { first, rest } = await open(message, terms);
        return { first: frameOf(toJsonString(output, create(output, first))), rest };
      },
    };
  },
});

const isPlain = ({ method, headers }: IncomingMessage): boolean =>
  method === 'POST' &&
  headers['content-type'] === STREAM_HEAD['content-type'] &&
  headers['connect-content-encoding'] === undefined &&
  isTimeout(headers[TIMEOUT] ?? '0');

const isTimeout = (text: string | readonly string[]): boolean =>
  typeof text === 'string' && /^[0-9]{1,10}$/.test(text) && Number(text) <= MOST_MS;
