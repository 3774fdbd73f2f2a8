import type { HttpAnswer } from '../../test/support/http-client.ts';
import { HttpClient } from '../../test/support/http-client.ts';
import type { Replica } from '../../test/support/replicas.ts';

export interface Outcome {
  readonly port: number;
  readonly began: number;
  readonly ended: number;
  /** 0: no whole answer came. */
  readonly status: number;
  readonly answer: HttpAnswer | undefined;
  readonly text: string;
}

const LOOK_EVERY_MS = 200;
const LOOK_MS = 1_000;

/**
 * A client as a balancer is one: it spreads requests over the replicas that say that they are ready, looked at five times a
 * second, goes to the next one where a connection is refused, and repeats nothing that may have been read.
 */
export class BalancedClient {
  /** `looks`: on connections of its own, so that it waits for no request. */
  readonly #clients: readonly { readonly client: HttpClient; readonly looks: HttpClient; readonly port: number }[];
  readonly #ready = new Set<number>();
  readonly #timer: NodeJS.Timeout;
  #turn = 0;

  constructor(replicas: readonly Replica[], key: string) {
    this.#clients = replicas.map(({ port }) => ({ client: new HttpClient(port, key), looks: new HttpClient(port, key), port }));
    for (const { port } of this.#clients) this.#ready.add(port);
    this.#timer = setInterval(() => { void this.#look(); }, LOOK_EVERY_MS);
  }

  async send(method: string, path: string, body?: unknown): Promise<Outcome> {
    const began = performance.now();
    let text = 'no replica is ready';
    for (const { client, port } of this.#inTurn()) {
      try {
        const answer = await client.send(method, path, body === undefined ? {} : { body });
        return { port, began, ended: performance.now(), status: answer.status, answer, text: answer.text };
      } catch (error) {
        text = error instanceof Error ? error.message : String(error);
        if (!text.includes('ECONNREFUSED')) return { port, began, ended: performance.now(), status: 0, answer: undefined, text };
        this.#ready.delete(port);
      }
    }
    return { port: 0, began, ended: performance.now(), status: 0, answer: undefined, text };
  }

  stop(): void {
    clearInterval(this.#timer);
    for (const each of this.#clients) for (const client of [each.client, each.looks]) client.close();
  }

  #inTurn() {
    const ready = this.#clients.filter(({ port }) => this.#ready.has(port));
    const at = this.#turn++ % Math.max(1, ready.length);
    return [...ready.slice(at), ...ready.slice(0, at)];
  }

  async #look(): Promise<void> {
    await Promise.all(this.#clients.map(async ({ looks, port }) => {
      const ready = await looks.get('/readyz', { signal: AbortSignal.timeout(LOOK_MS) }).then(({ status }) => status === 200, () => false);
      if (ready) this.#ready.add(port);
      else this.#ready.delete(port);
    }));
  }
}
