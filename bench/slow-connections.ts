import { connect, type Socket } from 'node:net';

const DRIP_MS = 1_000;

/** Clients that send one byte of a header a second, and come again when they are cut. */
export class SlowConnections {
  readonly #port: number;
  readonly #sockets = new Set<Socket>();
  readonly #timer: NodeJS.Timeout;
  #cut = 0;
  #over = false;

  constructor(port: number, count: number) {
    this.#port = port;
    for (let n = 0; n < count; n += 1) this.#open();
    this.#timer = setInterval(() => {
      for (const socket of this.#sockets) socket.write('a');
    }, DRIP_MS);
  }

  get open(): number {
    return [...this.#sockets].filter(({ readyState }) => readyState === 'open').length;
  }
  get cut(): number {
    return this.#cut;
  }

  close(): void {
    this.#over = true;
    clearInterval(this.#timer);
    for (const socket of this.#sockets) socket.destroy();
  }

  #open(): void {
    const socket = connect(this.#port, '127.0.0.1');
    this.#sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.resume();
    socket.on('close', () => {
      this.#sockets.delete(socket);
      if (this.#over) return;
      this.#cut += 1;
      this.#open();
    });
    socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\nA: ');
  }
}
