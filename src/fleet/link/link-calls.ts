import type {
  ClientHttp2Session,
  IncomingHttpHeaders,
  ServerHttp2Stream,
  Settings,
} from 'node:http2';
import type { Readable } from 'node:stream';
import type { Clock } from '../../contracts/clock.ts';
import { MOST_WORDS, UnsoundWord } from './link-words.ts';

export const MOST_TUNNELS = 1_024;
/** Unread bytes of a worker, over all connections of a link. */
export const WINDOW_BYTES = 4 << 20;
const LEAST_WINDOW_BYTES = 256 * 1024;
const WINDOW_BYTES_OF_MS = 64 * 1024;

/**
 * Unread bytes of a manager. Node's HTTP/2 does not read while it writes, so one direction's data
 * must fit into kernel buffers, or both ends write forever.
 */
export const workerWindow = (latencyMs: number): number =>
  Math.min(Math.max(LEAST_WINDOW_BYTES, Math.ceil(latencyMs) * WINDOW_BYTES_OF_MS), WINDOW_BYTES);
/** Limits one link at either end; beyond it, new connections are refused. */
export const MOST_MEMORY_MB = 32;

export const LINK_SETTINGS: Settings = {
  enablePush: false,
  initialWindowSize: 512 * 1024,
  maxConcurrentStreams: MOST_TUNNELS,
  maxHeaderListSize: 16_384,
};

/** Reads the body from the start, since the stream may close before the status event fires. */
export const ask = async (
  session: ClientHttp2Session,
  path: string,
  body: object,
): Promise<unknown> => await askUntil(session, { path, body });

interface AskedUntil {
  readonly path: string;
  readonly body: object;
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

/** Cancels and rejects if no whole answer comes in time. */
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

/** Rejects if the text is too long or not JSON. */
export const readWords = async (stream: Readable, mostWords = MOST_WORDS): Promise<unknown> => {
  let text = '';
  for await (const chunk of stream.setEncoding('utf8') as AsyncIterable<string>) {
    text += chunk;
    if (text.length > mostWords) throw new UnsoundWord('the other end sends too much');
  }
  return JSON.parse(text) as unknown;
};

/** Reads one long message per path at a time, since many unfinished ones would fill the memory. */
export const wordsReader = (long: ReadonlySet<string>, mostOfLong: number) => {
  let reading = 0;
  return async (stream: Readable, path: string): Promise<unknown> => {
    if (!long.has(path)) return await readWords(stream);
    if (reading >= long.size)
      throw new UnsoundWord('the other end sends too many messages at once');
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
