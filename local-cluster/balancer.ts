import { once } from 'node:events';
import { request } from 'node:http';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** One look at a time. */
const LOOK_MS = 250;
const LOOK_WITHIN_MS = 1_000;
/** Consecutive looks without an answer until a daemon is not ready. */
const MOST_UNANSWERED = 3;

interface Backend {
  readonly port: number;
  isReady: boolean;
  isLookedAt: boolean;
  unanswered: number;
  open: number;
}

/**
 * One address before several daemons, like a Kubernetes Service: a new connection goes to the ready
 * daemon (`GET /readyz`) with the fewest.
 */
export class Balancer {
  readonly #backends: readonly Backend[];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #timer: NodeJS.Timeout | undefined;

  constructor(ports: readonly number[]) {
    this.#backends = ports.map((port) => ({
      port,
      isReady: false,
      isLookedAt: false,
      unanswered: 0,
      open: 0,
    }));
    this.#server = createServer((client) => {
      this.#pass(client);
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }
  /** As last seen. */
  get ready(): readonly number[] {
    return this.#backends.filter(({ isReady }) => isReady).map(({ port }) => port);
  }

  /** Resolves after a look at each daemon. */
  async start(port = 0): Promise<void> {
    await this.#look();
    this.#timer = setInterval(() => {
      void this.#look();
    }, LOOK_MS);
    this.#server.listen(port, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    await Promise.all(
      this.#backends.map(async (backend) => {
        if (backend.isLookedAt) return;
        backend.isLookedAt = true;
        const saysReady = await isReady(backend.port);
        backend.isLookedAt = false;
        backend.unanswered = saysReady === undefined ? backend.unanswered + 1 : 0;
        if (saysReady !== undefined) backend.isReady = saysReady;
        else if (backend.unanswered >= MOST_UNANSWERED) backend.isReady = false;
      }),
    );
  }

  #pass(client: Socket): void {
    const [backend] = this.#backends
      .filter(({ isReady: is }) => is)
      .sort((a, b) => a.open - b.open);
    if (!backend) {
      client.on('error', () => undefined).resetAndDestroy();
      return;
    }
    const server = connect(backend.port, '127.0.0.1');
    backend.open += 1;
    server.once('close', () => {
      backend.open -= 1;
    });
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(from);
      from
        .on('error', () => {
          to.destroy();
        })
        .once('close', () => {
          this.#sockets.delete(from);
          to.destroySoon();
        });
      from.pipe(to);
    }
  }
}

/** Undefined if it did not answer in time. */
const isReady = (port: number): Promise<boolean | undefined> =>
  new Promise((resolve) => {
    const signal = AbortSignal.timeout(LOOK_WITHIN_MS);
    const asked = request(
      {
        port,
        host: '127.0.0.1',
        path: '/readyz',
        agent: false,
        signal,
      },
      (response) => {
        response.resume();
        resolve(response.statusCode === 200);
      },
    );
    asked.on('error', () => {
      resolve(signal.aborted ? undefined : false);
    });
    asked.end();
  });
