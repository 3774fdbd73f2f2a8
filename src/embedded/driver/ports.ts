import { PortUnreachable, type PortConnection } from '../../contracts/sandbox-driver.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import { openWay } from '../spawner/ports/port-dialling.ts';
import type { PortSocket } from '../spawner/ports/port-socket.ts';

/** Keeps an unused connection open this long. */
const READY_MS = 1_000;

export class Ports {
  readonly #forward: (id: InstanceId) => Promise<string>;
  readonly #sockets = new Map<InstanceId, string>();
  readonly #ready = new Map<InstanceId, PortSocket>();
  readonly #preparing = new Set<InstanceId>();

  /** `forward` starts a forwarder if none runs. */
  constructor(forward: (id: InstanceId) => Promise<string>) {
    this.#forward = forward;
  }

  /** Rejects as `forward` does, with PortUnreachable, or with the signal's reason. */
  async dial(id: InstanceId, port: number, signal: AbortSignal): Promise<PortConnection> {
    signal.throwIfAborted();
    const socket = this.#take(id) ?? (await this.#open(id, signal));
    socket.choose(port, signal);
    setImmediate(() => void this.#prepare(id));
    return socket;
  }

  forget(id: InstanceId): void {
    this.#sockets.delete(id);
    this.#take(id)?.destroy();
  }

  #take(id: InstanceId): PortSocket | undefined {
    const socket = this.#ready.get(id);
    this.#ready.delete(id);
    if (!socket || socket.destroyed) return undefined;
    return socket.setTimeout(0).ref();
  }

  async #open(id: InstanceId, signal: AbortSignal): Promise<PortSocket> {
    const known = this.#sockets.get(id);
    const socket = known === undefined ? undefined : await openWay(known, signal, unreachable);
    if (socket) return socket;
    // It does not listen yet, or has ended.
    const path = await this.#forward(id);
    this.#sockets.set(id, path);
    const opened = await openWay(path, signal, unreachable);
    if (!opened) throw unreachable('its port forwarder has ended');
    return opened;
  }

  /** Opens a connection for the next call; the sandbox does not notice. Never rejects. */
  async #prepare(id: InstanceId): Promise<void> {
    const path = this.#sockets.get(id);
    if (path === undefined || this.#ready.has(id) || this.#preparing.has(id)) return;
    this.#preparing.add(id);
    const socket = await openWay(path, AbortSignal.timeout(READY_MS), unreachable).catch(
      () => undefined,
    );
    this.#preparing.delete(id);
    if (!socket) return;
    if (this.#sockets.get(id) !== path) return void socket.destroy();
    this.#ready.set(id, socket.unref());
    const drop = (): void => {
      if (this.#ready.get(id) !== socket) return;
      this.#ready.delete(id);
      socket.destroy();
    };
    socket.once('close', drop).once('end', drop).setTimeout(READY_MS, drop);
  }
}

const unreachable = (why: string): PortUnreachable => new PortUnreachable(why);
