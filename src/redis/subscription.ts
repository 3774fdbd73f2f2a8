import type { Redis } from 'ioredis';
import type { Log } from '../contracts/log.ts';
import { nodesOf, redisNodeClient, retryAfter, type RedisNode } from './connection.ts';
import type { RedisSettings } from './settings.ts';

/** A connection counts as dead after this silence. */
const PING_MS = 2_000;
/** For a server that loads its data; then retried. */
const CONNECT_MS = 5_000;

export interface RedisSubscriptionDeps {
  readonly settings: RedisSettings;
  /** Found later. Every node of a cluster delivers all messages. */
  readonly nodes: () => readonly RedisNode[];
  readonly log: Log;
  /** At least one. */
  readonly channels: readonly string[];
  /** Must not throw. */
  readonly heard: (channel: string, text: string) => void;
  /** Called at each subscription: earlier messages may be lost. Must not throw. */
  readonly stands: () => void;
}

/**
 * Each connection serves one subscription. Any failure ends it, and the next attempt uses the next
 * node after a growing pause.
 */
export class RedisSubscription {
  readonly #deps: RedisSubscriptionDeps;
  #client: Redis | undefined;
  #stands = false;
  #stopped = false;
  #wake: () => void = () => undefined;

  constructor(deps: RedisSubscriptionDeps) {
    this.#deps = deps;
  }

  /** As far as known. */
  get stands(): boolean {
    return this.#stands;
  }

  /** Resolves after the first attempt; never rejects. */
  async start(): Promise<void> {
    const first = await this.#begin(0);
    void this.#keep(first);
  }

  stop(): void {
    this.#stopped = true;
    this.#client?.disconnect();
    this.#wake();
  }

  /** Never rejects. */
  async #keep(first: Redis | undefined): Promise<void> {
    let client = first;
    for (let failures = client ? 0 : 1; !this.#stopped;) {
      if (client) {
        await this.#untilItFails(client);
        failures = 0;
      }
      failures += 1;
      await this.#pause(retryAfter(failures));
      client = this.#stopped ? undefined : await this.#begin(failures);
    }
    this.#client?.disconnect();
  }

  /** Undefined after a failure. Never rejects. */
  async #begin(attempt: number): Promise<Redis | undefined> {
    const { settings, nodes, channels, heard, log } = this.#deps;
    const all = [...nodesOf(settings), ...nodes()];
    const node = all[attempt % all.length];
    if (!node) return undefined;
    const client = redisNodeClient(settings, 'channels', node);
    this.#client = client;
    client.on('error', () => undefined); // without a listener Node would print the error
    client.on('message', heard);
    const late = setTimeout(() => {
      client.disconnect();
    }, CONNECT_MS);
    try {
      await client.connect();
      await client.subscribe(...channels);
      this.#stands = true;
      log.debug({ ...node }, 'channels-followed');
      this.#deps.stands();
      return client;
    } catch (error) {
      log.debug({ ...node, error: String(error) }, 'channels-not-followed');
      client.disconnect();
      return undefined;
    } finally {
      clearTimeout(late);
    }
  }

  /** Keeps the connection active until it is closed. */
  async #untilItFails(client: Redis): Promise<void> {
    client.once('close', () => {
      this.#wake();
    });
    try {
      while (client.status === 'ready' && !this.#stopped) {
        await this.#pause(PING_MS);
        await client.ping();
      }
    } catch (error) {
      this.#deps.log.debug({ error: String(error) }, 'channels-lost');
    }
    this.#stands = false;
    client.disconnect();
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms).unref();
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
