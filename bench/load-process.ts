import { answerOrders } from './child.ts';
import { encodeAsk, KeptConnection, type RawAnswer } from './kept-connection.ts';
import type { LoadOrder, LoadResult } from './load.ts';
import { until } from './schedule.ts';

/** The client of every load. Takes one order after the other. */

const MAX_CONNECTIONS = 1_024;

class Run {
  readonly #requests: readonly Buffer[];
  readonly #port: number;
  readonly #latencies: number[];
  readonly #answers: RawAnswer[] = [];
  readonly #idle: KeptConnection[] = [];
  readonly #all = new Set<KeptConnection>();

  constructor({ port, asks }: LoadOrder) {
    this.#port = port;
    this.#requests = asks.map(encodeAsk);
    this.#latencies = asks.map(() => 0);
  }

  async closed(inFlight: number): Promise<LoadResult> {
    await this.#connect(Math.min(inFlight, this.#requests.length));
    const began = performance.now();
    let next = 0;
    await Promise.all(
      [...this.#all].map(async (connection) => {
        for (let at = next++; at < this.#requests.length; at = next++)
          await this.#one(connection, at, performance.now());
      }),
    );
    return this.#result(began);
  }

  async open(perSecond: number): Promise<LoadResult> {
    await this.#connect(Math.min(this.#requests.length, Math.ceil(perSecond / 10)));
    const began = performance.now() + 10;
    const running: Promise<void>[] = [];
    for (let at = 0; at < this.#requests.length; at += 1) {
      const due = began + (at * 1_000) / perSecond;
      await until(due);
      const one = this.#scheduled(at, due);
      one.catch(() => undefined); // Promise.all below rejects with it
      running.push(one);
    }
    await Promise.all(running);
    return this.#result(began);
  }

  close(): void {
    for (const connection of this.#all) connection.close();
  }

  async #scheduled(at: number, due: number): Promise<void> {
    const connection = this.#openIdle() ?? (await this.#connected());
    await this.#one(connection, at, due);
    this.#idle.push(connection);
  }

  /** The server closes unused ones. */
  #openIdle(): KeptConnection | undefined {
    for (;;) {
      const connection = this.#idle.pop();
      if (connection === undefined || connection.isOpen) return connection;
      this.#all.delete(connection);
    }
  }

  async #connected(): Promise<KeptConnection> {
    await this.#connect(1);
    const connection = this.#idle.pop();
    if (!connection) throw new Error('there is no connection');
    return connection;
  }

  async #one(connection: KeptConnection, at: number, from: number): Promise<void> {
    const request = this.#requests[at];
    if (!request) throw new Error(`there is no request ${at}`);
    this.#answers[at] = await connection.send(request);
    this.#latencies[at] = performance.now() - from;
  }

  async #connect(count: number): Promise<void> {
    if (this.#all.size + count > MAX_CONNECTIONS)
      throw new Error(`more than ${MAX_CONNECTIONS} requests are unanswered`);
    const opened = await Promise.all(
      Array.from({ length: count }, () => KeptConnection.open(this.#port)),
    );
    for (const connection of opened) this.#all.add(connection);
    this.#idle.push(...opened);
  }

  #result(began: number): LoadResult {
    const tookMs = performance.now() - began;
    return {
      tookMs,
      latencies: this.#latencies,
      statuses: this.#answers.map(({ status }) => status),
      bodies: this.#answers.map(({ body }) => body),
    };
  }
}

answerOrders(async (order: LoadOrder): Promise<LoadResult> => {
  const run = new Run(order);
  try {
    return await (order.mode.kind === 'closed'
      ? run.closed(order.mode.inFlight)
      : run.open(order.mode.perSecond));
  } finally {
    run.close();
  }
});
