import type {
  ClientHttp2Session,
  IncomingHttpHeaders,
  ServerHttp2Stream,
  Settings,
} from 'node:http2';
import type { Readable } from 'node:stream';
import { MOST_WORDS } from './link-words.ts';

/** Connections that one link carries at a time. */
export const MOST_TUNNELS = 1_024;
/** Bounds what either end may send before the other has read it, for all connections of a link. */
export const WINDOW_BYTES = 4 << 20;
/** Memory of one link at either end; beyond it new connections are refused. */
export const MOST_MEMORY_MB = 32;

export const LINK_SETTINGS: Settings = {
  enablePush: false,
  initialWindowSize: 512 * 1024,
  maxConcurrentStreams: MOST_TUNNELS,
  maxHeaderListSize: 16_384,
};

/** Sends a word over a link, and resolves with the answer to it. */
export const ask = (session: ClientHttp2Session, path: string, body: object): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const stream = session.request({ ':method': 'POST', ':path': path });
    stream.on('error', reject);
    const ended = (): void => reject(new Error('the link ended'));
    stream.once('close', ended);
    stream.once('response', (headers: IncomingHttpHeaders & { ':status'?: number }) => {
      stream.off('close', ended); // it may come before the last of the answer was read
      if (headers[':status'] !== 200)
        return reject(new Error(`the other end answered ${String(headers[':status'])} to ${path}`));
      readWords(stream).then(resolve, reject);
    });
    stream.end(JSON.stringify(body));
  });

/** Rejects with an Error where it is too long, or no JSON. */
export const readWords = async (stream: Readable): Promise<unknown> => {
  let text = '';
  for await (const chunk of stream.setEncoding('utf8') as AsyncIterable<string>) {
    text += chunk;
    if (text.length > MOST_WORDS) throw new Error('the other end says too much');
  }
  return JSON.parse(text) as unknown;
};

export const answerWords = (stream: ServerHttp2Stream, status: number, body: object): void => {
  if (stream.destroyed) return;
  stream.respond({ ':status': status });
  stream.end(JSON.stringify(body));
};
