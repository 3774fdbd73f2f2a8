import type {
  ClientHttp2Session,
  IncomingHttpHeaders,
  ServerHttp2Stream,
  Settings,
} from 'node:http2';
import type { Readable } from 'node:stream';
import type { Clock } from '../../contracts/clock.ts';
import { MOST_WORDS, UnsoundWord } from './link-words.ts';

/** Connections that one link carries at a time. */
export const MOST_TUNNELS = 1_024;
/** Bounds what a worker may send before the manager has read it, for all connections of a link. */
export const WINDOW_BYTES = 4 << 20;
const LEAST_WINDOW_BYTES = 256 * 1024;
const WINDOW_BYTES_OF_MS = 64 * 1024;

/**
 * Bounds what a manager may send before the worker has read it. Node's HTTP/2 reads nothing while
 * it writes; so one of both ways must fit into what kernels hold, or both ends may write, and
 * neither read, for ever. Over a longer way kernels hold more, and more is needed.
 */
export const workerWindow = (latencyMs: number): number =>
  Math.min(Math.max(LEAST_WINDOW_BYTES, Math.ceil(latencyMs) * WINDOW_BYTES_OF_MS), WINDOW_BYTES);
/** Memory of one link at either end; beyond it new connections are refused. */
export const MOST_MEMORY_MB = 32;

export const LINK_SETTINGS: Settings = {
  enablePush: false,
  initialWindowSize: 512 * 1024,
  maxConcurrentStreams: MOST_TUNNELS,
  maxHeaderListSize: 16_384,
};

/**
 * Sends a word over a link, and resolves with the answer to it. What comes is read from the start:
 * an answer may have come whole, and its stream be closed, before its status is told.
 */
export const ask = async (
  session: ClientHttp2Session,
  path: string,
  body: object,
): Promise<unknown> => await askUntil(session, { path, body });

interface AskedUntil {
  readonly path: string;
  readonly body: object;
  /** Takes the word back once it aborts. */
  readonly signal?: AbortSignal;
}

const askUntil = async (
  session: ClientHttp2Session,
  { path, body, signal }: AskedUntil,
): Promise<unknown> => {
  const stream = session.request({ ':method': 'POST', ':path': path }, signal && { signal });
  let status: number | undefined;
  stream.once('response', (headers: IncomingHttpHeaders & { ':status'?: number }) => {
    status = headers[':status'];
  });
  stream.end(JSON.stringify(body));
  const words = await readWords(stream);
  if (status !== 200) throw new Error(`the other end answered ${String(status)} to ${path}`);
  return words;
};

export interface AskedInTime extends Pick<AskedUntil, 'path' | 'body'> {
  readonly clock: Clock;
  readonly withinMs: number;
}

/** Does the same, and takes the word back where no whole answer comes in time: rejects then. */
export const askInTime = async (
  session: ClientHttp2Session,
  { path, body, clock, withinMs }: AskedInTime,
): Promise<unknown> => {
  const late = new AbortController();
  const callOff = clock.at(clock.now() + withinMs, () => late.abort());
  try {
    return await askUntil(session, { path, body, signal: late.signal });
  } catch (error) {
    throw late.signal.aborted ? new Error(`the other end does not answer to ${path}`) : error;
  } finally {
    callOff();
  }
};

/** Rejects with an Error where it is too long, or no JSON. */
export const readWords = async (stream: Readable, mostWords = MOST_WORDS): Promise<unknown> => {
  let text = '';
  for await (const chunk of stream.setEncoding('utf8') as AsyncIterable<string>) {
    text += chunk;
    if (text.length > mostWords) throw new UnsoundWord('the other end says too much');
  }
  return JSON.parse(text) as unknown;
};

/**
 * Returns how the words of a link are read, by their paths. Those that may be long are read one of
 * each path at a time, as they are said: who begins many and ends none would fill the memory.
 */
export const wordsReader = (long: ReadonlySet<string>, mostOfLong: number) => {
  let reading = 0;
  return async (stream: Readable, path: string): Promise<unknown> => {
    if (!long.has(path)) return await readWords(stream);
    if (reading >= long.size) throw new UnsoundWord('the other end says too much at once');
    reading += 1;
    try {
      return await readWords(stream, mostOfLong);
    } finally {
      reading -= 1;
    }
  };
};

export const answerWords = (stream: ServerHttp2Stream, status: number, body: object): void => {
  if (stream.closed || stream.destroyed) return;
  stream.respond({ ':status': status });
  stream.end(JSON.stringify(body));
};
