import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net';
import { connect as connectTls, createServer as createTlsServer, TLSSocket } from 'node:tls';

/**
 * A TCP proxy on loopback whose link can be made bad. `pass`: bytes go through. `hold`: they stop
 * in both directions, the connections stay open (a half-open link). `swallow-answers`: requests go
 * through, answers stop. `swallow-requests`: the other way round. `cut-answers`: the connection is
 * reset in place of the first byte of an answer.
 */
export type LinkState = 'pass' | 'hold' | 'swallow-answers' | 'swallow-requests' | 'cut-answers';

/**
 * What a proxy needs to see what passes: a certificate that clients accept, and the authority of
 * the target's.
 */
export interface ProxyTls {
  readonly key: string;
  readonly cert: string;
  readonly ca: string;
}

export class FaultProxy {
  readonly #target: { readonly host: string; readonly port: number };
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  #held: (() => void)[] = [];
  #state: LinkState = 'pass';
  /** Of every byte, each way. */
  delayMs = 0;
  /**
   * Of the answers on a connection whose last request has such a path; only with TLS of its own.
   */
  lag: { readonly of: RegExp; readonly ms: number } | undefined;
  /** Connections taken so far. */
  connections = 0;
  readonly #tls: ProxyTls | undefined;

  constructor(target: { readonly host: string; readonly port: number }, tls?: ProxyTls) {
    [this.#target, this.#tls] = [target, tls];
    const join = (client: Socket): void => {
      this.#join(client);
    };
    this.#server = tls
      ? createTlsServer({ key: tls.key, cert: tls.cert, ALPNProtocols: ['http/1.1'] }, join)
      : createServer(join);
  }

  /** Returns the port. */
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
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => {
        resolve();
      });
    });
    this.cut();
    await closed;
  }

  #join(client: Socket): void {
    this.connections += 1;
    const server = this.#tls
      ? connectTls({ ...this.#target, ca: this.#tls.ca, ALPNProtocols: ['http/1.1'] })
      : connect(this.#target);
    let path = '';
    const reset = (): void => {
      resetNow(client);
      resetNow(server);
    };
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on('error', reset).on('close', () => {
        this.#sockets.delete(socket);
        // else the other one ends once it has what is on its way
        if (!socket.readableEnded) reset();
      });
    }
    const forward = (to: Socket, chunk: Buffer, isAnswer: boolean): void => {
      if (isAnswer && this.#state === 'cut-answers') reset();
      else if (
        this.#state === 'hold' ||
        this.#state === (isAnswer ? 'swallow-answers' : 'swallow-requests')
      )
        this.#held.push(() => {
          forward(to, chunk, isAnswer);
        });
      else if (!to.destroyed) to.write(chunk);
    };
    const relay = (from: Socket, to: Socket, isAnswer: boolean): void => {
      const line = new Line();
      const delayMs = (): number =>
        Math.max(this.delayMs, isAnswer && this.lag?.of.test(path) === true ? this.lag.ms : 0);
      from.on('data', (chunk: Buffer) => {
        if (!isAnswer && this.#tls) path = pathIn(chunk) ?? path;
        line.pass(() => {
          forward(to, chunk, isAnswer);
        }, delayMs());
      });
      from.on('end', () => {
        line.pass(() => {
          to.end();
        }, delayMs());
      });
    };
    relay(client, server, false);
    relay(server, client, true);
  }
}

/**
 * One direction of a connection: what is late keeps what follows waiting, as bytes of TCP never
 * overtake each other.
 */
class Line {
  readonly #waiting: { readonly due: number; readonly go: () => void }[] = [];

  pass(go: () => void, delayMs: number): void {
    if (delayMs === 0 && this.#waiting.length === 0) return go();
    this.#waiting.push({ due: performance.now() + delayMs, go });
    if (this.#waiting.length === 1) this.#wait();
  }

  #wait(): void {
    const [next] = this.#waiting;
    if (!next) return;
    setTimeout(
      () => {
        next.go();
        this.#waiting.shift();
        this.#wait();
      },
      Math.max(0, next.due - performance.now()),
    );
  }
}

/** Of the request that begins with this chunk. */
const pathIn = (chunk: Buffer): string | undefined =>
  /^[A-Z]+ (\S+) HTTP/.exec(chunk.subarray(0, 2_048).toString('latin1'))?.[1];

/**
 * Node never lets go of a socket that is reset while it shuts down: the process then spins at its
 * exit.
 */
const resetNow = (socket: Socket): void => {
  if (socket.writableEnded || socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
};
