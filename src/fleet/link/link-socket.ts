import { createHash, randomBytes } from 'node:crypto';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** RFC 6455, 1.3. */
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const KEY = /^[+/0-9A-Za-z]{22}==$/;

/**
 * Header of one endless binary message (RFC 6455, 5.2), so a link passes WebSocket proxies while
 * HTTP/2 uses the socket itself. Some implementations count in doubles, hence 2^53 − 1. The
 * worker's zero mask leaves the bytes unchanged.
 */
const FROM_MANAGER = Buffer.from([0x82, 0x7f, 0, 0x1f, 255, 255, 255, 255, 255, 255]);
const FROM_WORKER = Buffer.concat([
  Buffer.from([0x82, 0xff]),
  FROM_MANAGER.subarray(2),
  Buffer.alloc(4),
]);

export const asksLink = ({ headers }: IncomingMessage): boolean =>
  headers.upgrade?.toLowerCase() === 'websocket' &&
  headers['sec-websocket-version'] === '13' &&
  KEY.test(headers['sec-websocket-key'] ?? '');

/**
 * Resolves once the worker's message begins; rejects if other bytes arrive or the connection ends.
 */
export const acceptLink = async (
  { headers }: IncomingMessage,
  socket: Duplex,
  first: Buffer,
): Promise<void> => {
  const lines = [
    'HTTP/1.1 101 Switching Protocols',
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Accept: ${acceptOf(headers['sec-websocket-key'] ?? '')}`,
  ];
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  await begun(socket, first, { mine: FROM_MANAGER, theirs: FROM_WORKER });
};

export interface LinkDial {
  readonly withinMs: number;
  readonly opened: (connection: Socket) => void;
  readonly failed: (why: string) => void;
}

/** Calls either `opened` or `failed`, once. Returns a function that cancels. */
export const dialLink = (url: URL, { withinMs, opened, failed }: LinkDial): (() => void) => {
  const key = randomBytes(16).toString('base64');
  const secure = url.protocol === 'wss:';
  const asked = (secure ? httpsRequest : httpRequest)({
    host: url.hostname.replaceAll(/[[\]]/g, ''),
    port: url.port === '' ? undefined : Number(url.port),
    path: `${url.pathname}${url.search}`,
    agent: false,
    timeout: withinMs,
    headers: {
      Connection: 'Upgrade',
      Upgrade: 'websocket',
      'Sec-WebSocket-Version': '13',
      'Sec-WebSocket-Key': key,
    },
  });
  let connection: Duplex | undefined;
  let over = false;
  const end = (why: string): void => {
    if (over) return;
    over = true;
    asked.destroy();
    connection?.destroy();
    failed(why);
  };
  asked.on('timeout', () => end('it did not answer in time'));
  asked.on('error', ({ message }) => end(message));
  asked.once('response', ({ statusCode }) =>
    end(`unexpected server response: ${String(statusCode)}`),
  );
  asked.once('upgrade', (answer, socket, first) => {
    connection = socket;
    socket.setTimeout(withinMs, () => end('it did not start in time'));
    socket.on('error', ({ message }) => end(message));
    if (answer.headers['sec-websocket-accept'] !== acceptOf(key))
      return end('it is not a WebSocket');
    begun(socket, first, { mine: FROM_WORKER, theirs: FROM_MANAGER })
      .then(() => {
        if (over) return;
        socket.setTimeout(0);
        opened(socket);
        over = true;
      })
      .catch((error: unknown) => end(error instanceof Error ? error.message : String(error)));
  });
  asked.end();
  return () => end('it took too long to start');
};

/** Leaves the bytes after the peer's header unread. */
const begun = async (
  socket: Duplex,
  first: Buffer,
  { mine, theirs }: { readonly mine: Buffer; readonly theirs: Buffer },
): Promise<void> => {
  if (first.length > 0) socket.unshift(first);
  const [head] = await Promise.all([
    readExactly(socket, theirs.length),
    // Hazard: HTTP/2 would take the completion of a pending write for its own and abort the
    // process.
    new Promise<void>((resolve, reject) => {
      socket.write(mine, (error) => (error ? reject(error) : resolve()));
    }),
  ]);
  if (!head.equals(theirs)) throw new Error('the other end did not open a link');
};

const readExactly = (socket: Duplex, count: number): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const look = (): void => {
      const bytes = socket.read(count) as Buffer | null;
      if (bytes === null) return;
      done();
      if (bytes.length === count) resolve(bytes);
      else reject(new Error('the connection ended'));
    };
    const closed = (): void => {
      done();
      reject(new Error('the connection ended'));
    };
    const done = (): void => {
      socket.off('readable', look);
      socket.off('close', closed);
      socket.off('end', closed);
    };
    socket.on('readable', look);
    socket.on('close', closed);
    socket.on('end', closed);
    look();
  });

const acceptOf = (key: string): string =>
  createHash('sha1')
    .update(key + GUID)
    .digest('base64');
