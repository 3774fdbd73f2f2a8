import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

const WITHIN_MS = 120_000;

export interface StreamAsk {
  readonly port: number;
  readonly key: string;
  readonly method: string;
  readonly path: string;
  readonly headers?: readonly string[];
  /** JSON text. */
  readonly body?: string;
}

/**
 * Opens a connection for one answer that goes on. It does as little as it can, so that client and
 * server on one machine measure the server.
 */
export const openConnection = async (port: number): Promise<Socket> => {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  await once(socket, 'connect');
  return socket.setTimeout(WITHIN_MS, () => socket.destroy(new Error('nothing came in time')));
};

export const headOf = ({ key, method, path, headers = [], body }: StreamAsk): string =>
  [
    `${method} ${path} HTTP/1.1`,
    'Host: 127.0.0.1',
    `SERVICE-API-KEY: ${key}`,
    ...headers,
    ...(body === undefined
      ? []
      : ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`]),
    '',
    body ?? '',
  ].join('\r\n');

/** Asks on a connection of its own, and resolves once the text has come, with what it took. */
export const timeUntil = async (ask: StreamAsk, text: string): Promise<number> => {
  const socket = await openConnection(ask.port);
  try {
    const began = performance.now();
    socket.write(headOf(ask));
    await hearing(socket, text);
    return performance.now() - began;
  } finally {
    socket.destroy();
  }
};

/** Resolves once the text has come; rejects where the answer ends before. */
export const hearing = (socket: Socket, text: string): Promise<void> =>
  new Promise((resolve, reject) => {
    let heard = '';
    const done = (error?: Error): void => {
      socket.off('data', take).off('error', done).off('close', cut);
      if (error) reject(error);
      else resolve();
    };
    const cut = (): void => done(new Error(`it ended before ${text}: ${heard.slice(0, 500)}`));
    const take = (bytes: Buffer): void => {
      heard += bytes.toString('latin1');
      if (heard.includes(text)) done();
    };
    socket.on('data', take).once('error', done).once('close', cut);
  });

export interface WholeAnswer {
  readonly tookMs: number;
  readonly bytes: number;
  /** Its first and last bytes. */
  readonly start: string;
  readonly end: string;
}

const LOOKED_AT = 1_024;

/** Reads an answer to its end, for which the server closes the connection. */
export const readWhole = async (
  ask: StreamAsk,
  send?: (socket: Socket) => Promise<void>,
): Promise<WholeAnswer> => {
  const headers = [...(ask.headers ?? []), 'Connection: close'];
  const socket = await openConnection(ask.port);
  const began = performance.now();
  let [bytes, start, end] = [0, '', Buffer.alloc(0)];
  socket.on('data', (piece) => {
    bytes += piece.length;
    if (start.length < LOOKED_AT) start += piece.subarray(0, LOOKED_AT).toString('latin1');
    end = piece.length >= LOOKED_AT ? piece : Buffer.concat([end, piece]);
    if (end.length > LOOKED_AT) end = end.subarray(-LOOKED_AT);
  });
  const closed = once(socket, 'close');
  socket.write(headOf({ ...ask, headers }));
  await send?.(socket);
  await closed;
  const tookMs = performance.now() - began;
  if (!/^HTTP\/1\.1 20[01] /.test(start)) throw new Error(`answered ${start.slice(0, 500)}`);
  return { tookMs, bytes, start, end: end.toString('latin1') };
};
