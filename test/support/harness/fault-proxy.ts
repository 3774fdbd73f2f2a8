import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net';
import { connect as connectTls, createServer as createTlsServer, TLSSocket } from 'node:tls';

/**
 * A TCP proxy with a breakable link. `hold`: bytes stop, connections stay open. `swallow-answers`
 * and `swallow-requests`: one direction stops. `cut-answers`: a reset replaces an answer's first
 * byte.
 */
export type LinkState = 'pass' | 'hold' | 'swallow-answers' | 'swallow-requests' | 'cut-answers';

/** Lets a proxy see traffic: a certificate that clients accept, and the target's authority. */
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
  /** For every byte, each way. */
  delayMs = 0;
  /** Delays answers to requests for such a path; needs `tls`. */
  lag: { readonly of: RegExp; readonly ms: number } | undefined;
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

  /** Accepts new connections. */
  cut(): void {
    for (const socket of this.#sockets) resetNow(socket);
  }

  /** Also resets connections. */
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
        // else the other one ends after its pending bytes
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

/** One direction: late bytes delay those behind them, as in TCP. */
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

/** Path of the request in this chunk. */
const pathIn = (chunk: Buffer): string | undefined =>
  /^[A-Z]+ (\S+) HTTP/.exec(chunk.subarray(0, 2_048).toString('latin1'))?.[1];

/** Node leaks a socket that is reset during its shutdown, and the process spins at its exit. */
const resetNow = (socket: Socket): void => {
  if (socket.writableEnded || socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
};
