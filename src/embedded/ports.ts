import type { Duplex } from 'node:stream';
import { PortUnreachable } from '../contracts/sandbox-driver.ts';
import type { InstanceId } from '../model/identifiers.ts';
import { dialPort, NoConnection } from './spawner/port-dialling.ts';

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
      const socket = await through(known, port, signal);
      if (socket) return socket;
    }
    // Its forwarder is not yet there, or ended.
    const path = await this.#forward(id);
    this.#sockets.set(id, path);
    const socket = await through(path, port, signal);
    if (!socket) throw new PortUnreachable(`port ${port}: the way to it is gone`);
    return socket;
  }

  /** It is no more. */
  forget(id: InstanceId): void {
    this.#sockets.delete(id);
  }
}

const through = (path: string, port: number, signal: AbortSignal): Promise<Duplex | undefined> => dialPort(path, port, signal).catch((error: unknown) => {
  throw error instanceof NoConnection ? new PortUnreachable(error.message, { cause: error }) : error;
});
