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

/** Says under which terms a stream is asked for. */
export interface StreamTerms {
  readonly call: Call;
  /** Returns how much of its time is left; undefined: it has no end. */
  readonly leftMs: () => number | undefined;
  readonly header: (name: string) => string | null;
}

/** A call of a stream that was read. */
export interface PlainOpening {
  readonly operation: ServedOperation;
  readonly timeoutMs: number | undefined;
  /** Opens the stream: its first frame, and what comes behind that. */
  readonly open: (
    terms: StreamTerms,
  ) => Promise<{ readonly first: Buffer; readonly rest: FramesToCome }>;
}

/** A stream that is served without the library. */
export interface PlainStream {
  readonly path: string;
  /**
   * Reads a call that is as SDKs send it. Returns undefined of any other: the library reads that,
   * or says what is wrong with it.
   */
  readonly opening: (request: IncomingMessage, body: Buffer) => PlainOpening | undefined;
}

export const TIMEOUT = 'connect-timeout-ms';
/** The longest that a timer takes. */
export const MOST_MS = 2 ** 31 - 1;
export const STREAM_HEAD = { 'content-type': 'application/connect+json' };
/** As the library reads messages. */
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
