import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net';

/**
 * A TCP proxy on loopback whose link can be made bad. `pass`: bytes go through. `hold`: they stop in both directions, the
 * connections stay open (a half-open link). `swallow-answers`: requests go through, answers stop. `cut-answers`: the connection
 * is reset in place of the first byte of an answer.
 */
export type LinkState = 'pass' | 'hold' | 'swallow-answers' | 'cut-answers';

export class FaultProxy {
  readonly #target: { readonly host: string; readonly port: number };
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  #held: (() => void)[] = [];
  #state: LinkState = 'pass';
  /** Of every byte, each way. */
  delayMs = 0;
  /** Connections taken so far. */
  connections = 0;

  constructor(target: { readonly host: string; readonly port: number }) {
    this.#target = target;
    this.#server = createServer((client) => { this.#join(client); });
  }

  /** Answers the port. */
  async start(port = 0): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, '127.0.0.1', resolve);
    });
    return (this.#server.address() as AddressInfo).port;
  }

  set state(state: LinkState) {
    this.#state = state;
    const held = this.#held;
    this.#held = [];
    for (const again of held) again();
  }

  /** Resets every connection; new ones are taken. */
  cut(): void {
    for (const socket of this.#sockets) resetNow(socket);
  }

  /** Takes no more connections, and resets those there are. */
  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => { this.#server.close(() => { resolve(); }); });
    this.cut();
    await closed;
  }

  #join(client: Socket): void {
    this.connections += 1;
    const server = connect(this.#target);
    const reset = (): void => {
      resetNow(client);
      resetNow(server);
    };
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on('error', reset).on('close', () => {
        this.#sockets.delete(socket);
        if (!socket.readableEnded) reset(); // else the other one ends once it has what is on its way
      });
    }
    const forward = (to: Socket, chunk: Buffer, isAnswer: boolean): void => {
      if (isAnswer && this.#state === 'cut-answers') reset();
      else if (this.#state === 'hold' || (isAnswer && this.#state === 'swallow-answers')) this.#held.push(() => { forward(to, chunk, isAnswer); });
      else if (!to.destroyed) to.write(chunk);
    };
    const relay = (from: Socket, to: Socket, isAnswer: boolean): void => {
      from.on('data', (chunk) => {
        if (this.delayMs > 0) setTimeout(() => { forward(to, chunk, isAnswer); }, this.delayMs);
        else forward(to, chunk, isAnswer);
      });
      from.on('end', () => { to.end(); });
    };
    relay(client, server, false);
    relay(server, client, true);
  }
}

/** Node never lets go of a socket that is reset while it shuts down: the process then spins at its exit. */
const resetNow = (socket: Socket): void => {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
};
