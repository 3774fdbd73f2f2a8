import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Service } from './service.ts';

export const MIB = 64;
export const BYTES = MIB << 20;
export const PIECE = Buffer.alloc(
  64 << 10,
  'a line of text that is of no use to anybody else here\n',
);
const WITHIN_MS = 120_000;
const LOOKED_AT = 1_024;

export interface Place {
  readonly service: Service;
  readonly key: string;
  readonly id: string;
  readonly folder: string;
}

/** MB/s for 64 MiB. */
export const rateOf = (tookMs: number): number => MIB / (tookMs / 1_000);

/** Must succeed. Returns its output. */
export const run = async ({ service, id }: Place, command: string): Promise<string> => {
  const body = JSON.stringify({ command, timeoutSeconds: 60 });
  const path = `/sandboxes/${id}/exec`;
  const answer = await service.call({ method: 'POST', path, body }, 200);
  const { exitCode, stdout } = JSON.parse(answer) as { exitCode: number; stdout: string };
  if (exitCode !== 0) throw new Error(`${command}: ${answer.slice(0, 500)}`);
  return stdout;
};

/** In MB/s. */
export const upload = async (place: Place): Promise<number> => {
  const { tookMs } = await exchange(place, {
    head: `PUT ${place.id}/files?path=${place.folder}/ours`,
    headers: ['Content-Type: application/octet-stream', `Content-Length: ${BYTES}`],
    send: writePieces,
  });
  return rateOf(tookMs);
};

/** Reads `content`, in MB/s. */
export const download = async (place: Place): Promise<number> => {
  const { bytes, tookMs } = await exchange(place, {
    head: `GET ${place.id}/files?path=${place.folder}/content`,
  });
  if (bytes < BYTES) throw new Error(`only ${bytes} bytes came`);
  return rateOf(tookMs);
};

/** Reads `content` as the output of a process, in MB/s. */
export const stream = async (place: Place): Promise<number> => {
  const body = JSON.stringify({ command: ['/bin/cat', `${place.folder}/content`] });
  const { bytes, tookMs, end } = await exchange(place, {
    head: `POST ${place.id}/processes?pace=true&encoding=base64`,
    headers: [
      'Accept: text/event-stream',
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ],
    send: async (socket) => {
      socket.write(body);
    },
  });
  if (bytes < BYTES || !end.includes('"exitCode":0,'))
    throw new Error(`only ${bytes} bytes came: ${end}`);
  return rateOf(tookMs);
};

export const writePieces = async (to: NodeJS.WritableStream): Promise<void> => {
  for (let left = BYTES; left > 0; left -= PIECE.length)
    if (!to.write(PIECE)) await once(to, 'drain');
};

interface Exchange {
  readonly head: string;
  readonly headers?: readonly string[];
  readonly send?: (socket: Socket) => Promise<void>;
}

/**
 * Reads only the first and last bytes of the answer, so that client and server on one machine
 * measure the server.
 */
const exchange = async (
  { service: { port }, key }: Place,
  { head, headers = [], send }: Exchange,
): Promise<{ readonly tookMs: number; readonly bytes: number; readonly end: string }> => {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  await once(socket, 'connect');
  socket.setTimeout(WITHIN_MS, () => socket.destroy(new Error('nothing came in time')));
  const [method = '', path = ''] = head.split(' ');
  const began = performance.now();
  let [bytes, start, end] = [0, '', Buffer.alloc(0)];
  socket.on('data', (piece) => {
    bytes += piece.length;
    if (start.length < LOOKED_AT) start += piece.subarray(0, LOOKED_AT).toString('latin1');
    end = piece.length >= LOOKED_AT ? piece : Buffer.concat([end, piece]);
    if (end.length > LOOKED_AT) end = end.subarray(-LOOKED_AT);
  });
  const closed = once(socket, 'close');
  const lines = [
    `${method} /sandboxes/${path} HTTP/1.1`,
    'Host: 127.0.0.1',
    `SERVICE-API-KEY: ${key}`,
    'Connection: close',
    ...headers,
  ];
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  await send?.(socket);
  await closed;
  const tookMs = performance.now() - began;
  if (!/^HTTP\/1\.1 20[01] /.test(start)) throw new Error(`answered ${start.slice(0, 500)}`);
  return { tookMs, bytes, end: end.toString('latin1') };
};
