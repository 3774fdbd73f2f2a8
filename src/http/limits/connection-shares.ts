import type { Socket } from 'node:net';
import { addressGroup, plainAddress } from './address-group.ts';

/**
 * Counts the open connections of each address, an IPv6 one by its /64, and cuts one that is over
 * the share: one client can't take all there are. A trusted proxy speaks for many, so it has no
 * share.
 */
export class ConnectionShares {
  readonly #most: number;
  readonly #isProxy: (address: string | undefined) => boolean;
  readonly #seen = new WeakSet<Socket>();
  readonly #open = new Map<string, number>();

  constructor(options: {
    readonly most: number;
    readonly isProxy: (address: string | undefined) => boolean;
  }) {
    this.#most = options.most;
    this.#isProxy = options.isProxy;
  }

  /** To be called for each new connection; may be repeated. */
  admit(socket: Socket): void {
    if (this.#seen.has(socket)) return;
    this.#seen.add(socket);
    const { remoteAddress } = socket;
    if (remoteAddress === undefined || this.#isProxy(remoteAddress)) return;
    const group = addressGroup(plainAddress(remoteAddress));
    const open = this.#open.get(group) ?? 0;
    if (open >= this.#most) return void socket.destroy();
    this.#open.set(group, open + 1);
    socket.once('close', () => this.#leave(group));
  }

  #leave(group: string): void {
    const left = (this.#open.get(group) ?? 1) - 1;
    if (left > 0) this.#open.set(group, left);
    else this.#open.delete(group);
  }
}
