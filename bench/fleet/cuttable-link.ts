import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/**
 * Stands between a worker and its manager, and can be cut without a word, as a network is: both
 * sides' connections stay open, and nothing that is sent arrives. Once healed it carries on, and
 * tells each side of what the other ended meanwhile.
 */
export class CuttableLink {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isCut = false;

  private constructor(server: Server) {
    this.#server = server;
  }

  /** To the server on this port of loopback. */
  static async to(port: number): Promise<CuttableLink> {
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true });
    const link = new CuttableLink(server);
    server.on('connection', (near) => {
      const far = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
      near.setNoDelay(true);
      link.#join(near, far);
      link.#join(far, near);
      if (!link.#isCut) near.resume();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return link;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.pause();
  }

  heal(): void {
    this.#isCut = false;
    for (const socket of this.#sockets) socket.resume();
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #join(from: Socket, to: Socket): void {
    this.#sockets.add(from);
    from.on('data', (bytes) => void to.write(bytes));
    from.on('end', () => to.end());
    from.on('error', () => undefined);
    from.once('close', () => {
      this.#sockets.delete(from);
      to.destroy();
    });
  }
}
