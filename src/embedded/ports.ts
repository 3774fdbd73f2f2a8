import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { PortUnreachable } from '../contracts/sandbox-driver.ts';
import type { InstanceId } from '../model/identifiers.ts';

/** Of the forwarder's answers (native/README.md) those that tell more than that there is no connection. */
const REASONS: Readonly<Record<number, string>> = {
  11: 'too many connections to the sandbox are open',
  13: 'the port is held by a process that is not the sandbox\'s',
  110: 'it does not answer',
  111: 'nothing listens on it',
};

/** Connections to sandboxes' ports, each through its sandbox's forwarder. */
export class Ports {
  readonly #forward: (id: InstanceId) => Promise<string>;
  readonly #sockets = new Map<InstanceId, string>();

  /** `forward` answers the forwarder's socket, and starts one where there is none. */
  constructor(forward: (id: InstanceId) => Promise<string>) {
    this.#forward = forward;
  }

  /** Rejects with PortUnreachable, with what `forward` rejects with, or with the signal's reason. */
  async dial(id: InstanceId, port: number, signal: AbortSignal): Promise<Duplex> {
    signal.throwIfAborted();
    const known = this.#sockets.get(id);
    if (known !== undefined) {
      const socket = await dialThrough(known, port, signal);
      if (socket) return socket;
    }
    // Its forwarder is not yet there, or ended.
    const path = await this.#forward(id);
    this.#sockets.set(id, path);
    const socket = await dialThrough(path, port, signal);
    if (!socket) throw new PortUnreachable(`port ${port}: the way to it is gone`);
    return socket;
  }

  /** It is no more. */
  forget(id: InstanceId): void {
    this.#sockets.delete(id);
  }
}

/** The port is said first, in two bytes; one comes back. Undefined where no forwarder listens. */
const dialThrough = (path: string, port: number, signal: AbortSignal): Promise<Socket | undefined> => new Promise((resolve, reject) => {
  const socket = connect({ path });
  const settle = (act: () => void): void => {
    signal.removeEventListener('abort', abort);
    socket.off('readable', look).off('error', failed).off('close', closed);
    act();
  };
  const abort = (): void => settle(() => { socket.destroy(); reject(signal.reason); });
  const failed = (error: NodeJS.ErrnoException): void => settle(() => {
    if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED') resolve(undefined);
    else reject(new PortUnreachable(`port ${port}: ${error.message}`, { cause: error }));
  });
  const closed = (): void => settle(() => reject(new PortUnreachable(`port ${port}: the sandbox ended, or its way out did`)));
  const look = (): void => {
    const answer: Buffer | null = socket.read(1);
    if (!answer) return;
    const code = answer.readUInt8(0);
    if (code === 0) return settle(() => resolve(socket));
    settle(() => { socket.on('error', () => {}).destroy(); reject(new PortUnreachable(`port ${port}: ${REASONS[code] ?? `it can not be reached (${code})`}`)); });
  };
  signal.addEventListener('abort', abort, { once: true });
  socket.on('readable', look).on('error', failed).on('close', closed);
  socket.write(Buffer.from([port >> 8, port & 0xff]));
});
