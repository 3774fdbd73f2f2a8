import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** A fixed address whose link to a daemon can be cut or redirected. */
export class CuttableWay {
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  #port: number;
  #isCut = false;

  private constructor(port: number) {
    this.#port = port;
    this.#server = createServer((client) => {
      if (this.#isCut) return void client.destroy();
      const way = connect(this.#port, '127.0.0.1');
      for (const [one, other] of [
        [client, way],
        [way, client],
      ] as const) {
        this.#sockets.add(one);
        one.on('error', () => other.destroy());
        one.once('close', () => {
          this.#sockets.delete(one);
          other.destroy();
        });
        one.pipe(other);
      }
    });
  }

  static async to(address: string): Promise<CuttableWay> {
    const way = new CuttableWay(Number(new URL(address).port));
    await new Promise<void>((resolve) => void way.#server.listen(0, '127.0.0.1', resolve));
    return way;
  }

  get url(): string {
    return `ws://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  leadTo({ port }: { readonly port: number }): void {
    this.#port = port;
  }

  heal(): void {
    this.#isCut = false;
  }

  stop(): void {
    this.cut();
    this.#server.close();
  }
}
