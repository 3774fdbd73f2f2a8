import { Agent, request } from 'node:http';
import type { Replica } from '../../local-cluster/replicas.ts';

export interface Outcome {
  readonly port: number;
  readonly began: number;
  readonly ended: number;
  /** 0: no whole answer came. */
  readonly status: number;
  /** The body, or why there is none. */
  readonly text: string;
}

const LOOK_EVERY_MS = 200;
const LOOK_MS = 1_000;
const MOST_CONNECTIONS = 16;

/** `looks`: on connections of its own, so that it waits for no request. */
interface Way {
  readonly port: number;
  readonly requests: Agent;
  readonly looks: Agent;
}

/**
 * A client as a balancer is one: it spreads requests over the replicas that say that they are
 * ready, looked at five times a second, goes to the next one where a connection is refused, and
 * repeats nothing that may have been read.
 */
export class BalancedClient {
  readonly #ways: readonly Way[];
  readonly #key: string;
  readonly #ready = new Set<number>();
  readonly #timer: NodeJS.Timeout;
  #turn = 0;

  constructor(replicas: readonly Replica[], key: string) {
    const agent = (): Agent => new Agent({ keepAlive: true, maxSockets: MOST_CONNECTIONS });
    this.#ways = replicas.map(({ port }) => ({ port, requests: agent(), looks: agent() }));
    this.#key = key;
    for (const { port } of this.#ways) this.#ready.add(port);
    this.#timer = setInterval(() => {
      void this.#look();
    }, LOOK_EVERY_MS);
  }

  async send(method: string, path: string, body?: unknown): Promise<Outcome> {
    const began = performance.now();
    let text = 'no replica is ready';
    for (const { port, requests } of this.#inTurn()) {
      try {
        const answer = await this.#exchange({
          port,
          agent: requests,
          method,
          path,
          ...(body === undefined ? {} : { body }),
        });
        return { port, began, ended: performance.now(), ...answer };
      } catch (error) {
        text = error instanceof Error ? error.message : String(error);
        if (!text.includes('ECONNREFUSED'))
          return { port, began, ended: performance.now(), status: 0, text };
        this.#ready.delete(port);
      }
    }
    return { port: 0, began, ended: performance.now(), status: 0, text };
  }

  stop(): void {
    clearInterval(this.#timer);
    for (const { requests, looks } of this.#ways)
      for (const agent of [requests, looks]) agent.destroy();
  }

  #inTurn(): readonly Way[] {
    const ready = this.#ways.filter(({ port }) => this.#ready.has(port));
    const at = this.#turn++ % Math.max(1, ready.length);
    return [...ready.slice(at), ...ready.slice(0, at)];
  }

  async #look(): Promise<void> {
    await Promise.all(
      this.#ways.map(async ({ port, looks }) => {
        const ready = await this.#exchange({
          port,
          agent: looks,
          method: 'GET',
          path: '/readyz',
          signal: AbortSignal.timeout(LOOK_MS),
        }).then(
          ({ status }) => status === 200,
          () => false,
        );
        if (ready) this.#ready.add(port);
        else this.#ready.delete(port);
      }),
    );
  }

  /** Rejects where no whole answer came. */
  #exchange({
    body,
    ...asked
  }: Exchange): Promise<{ readonly status: number; readonly text: string }> {
    const payload = body === undefined ? undefined : JSON.stringify(body);
    const headers = {
      'SERVICE-API-KEY': this.#key,
      ...(payload === undefined
        ? {}
        : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(payload) }),
    };
    return new Promise((resolve, reject) => {
      const sent = request({ host: '127.0.0.1', ...asked, headers }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('error', reject).on('end', () => {
          resolve({ status: response.statusCode ?? 0, text });
        });
      });
      sent.on('error', reject).end(payload);
    });
  }
}

interface Exchange {
  readonly port: number;
  readonly agent: Agent;
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

/** The sandbox that was claimed, where one was. */
export const claimedId = ({ status, text }: Outcome): string | undefined =>
  status === 201
    ? (JSON.parse(text) as { readonly sandbox: { readonly sandboxId: string } }).sandbox.sandboxId
    : undefined;
