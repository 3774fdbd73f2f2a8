import { connect, type Socket } from 'node:net';

/** The port took no connection; `message` says why. */
export class NoConnection extends Error {
  override readonly name = 'NoConnection';
}

/** Of the forwarder's answers (native/README.md) those that tell more than that there is no connection. */
const REASONS: Readonly<Record<number, string>> = {
  11: 'too many connections to the sandbox are open',
  13: 'the port is held by a process that is not the sandbox\'s',
  110: 'it does not answer',
  111: 'nothing listens on it',
};

/**
 * A connection to a port through a forwarder's socket: the port is said first, in two bytes; one comes back. Undefined where
 * no forwarder listens. Rejects with NoConnection, or the signal's reason.
 */
export const dialPort = (path: string, port: number, signal: AbortSignal): Promise<Socket | undefined> => new Promise((resolve, reject) => {
  const socket = connect({ path });
  const settle = (act: () => void): void => {
    signal.removeEventListener('abort', abort);
    socket.off('readable', look).off('error', failed).off('close', closed);
    act();
  };
  const drop = (error: unknown): void => settle(() => {
    socket.on('error', () => {}).destroy();
    reject(error);
  });
  const abort = (): void => drop(signal.reason);
  const failed = (error: NodeJS.ErrnoException): void => {
    if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED') settle(() => resolve(undefined));
    else drop(new NoConnection(`port ${port}: ${error.message}`, { cause: error }));
  };
  const closed = (): void => drop(new NoConnection(`port ${port}: the sandbox ended, or its way out did`));
  const look = (): void => {
    const answer: Buffer | null = socket.read(1);
    if (!answer) return;
    const code = answer.readUInt8(0);
    if (code === 0) settle(() => resolve(socket));
    else drop(new NoConnection(`port ${port}: ${REASONS[code] ?? `it can not be reached (${code})`}`));
  };
  if (signal.aborted) return abort();
  signal.addEventListener('abort', abort, { once: true });
  socket.on('readable', look).on('error', failed).on('close', closed);
  socket.write(Buffer.from([port >> 8, port & 0xff]));
});
