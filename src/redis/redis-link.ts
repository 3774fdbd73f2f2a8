import { Cluster, type Redis } from 'ioredis';
import type { Log } from '../contracts/log.ts';
import type { Metrics } from '../contracts/metrics.ts';
import { Refusal, unavailable } from '../model/refusals.ts';
import { COMMAND_MS, redisClient, type RedisNode } from './connection.ts';
import { loadScripts, type Operation } from './script.ts';
import type { RedisSettings } from './settings.ts';
import type { Keys } from './keys.ts';

export interface RedisPlace {
  readonly link: RedisLink;
  readonly keys: Keys;
}

/** Shorter than a caller's deadline. Redis' time is known to within one round trip. */
export const SCRIPT_MS = 900;
const PING_MS = 2_000;

type ScriptArgs = readonly (string | number)[];

export interface RedisLinkOptions {
  readonly settings: RedisSettings;
  /** In CLIENT LIST and log lines. */
  readonly name: string;
  readonly log: Log;
  readonly metrics: Metrics;
  /** In ms. */
  readonly monotonic?: () => number;
}

/**
 * Advanced by this process's monotonic clock: setting the machine's clock does not move it.
 * `unknown` until the first answer.
 */
class RedisTime {
  readonly #monotonic: () => number;
  #offset: number | undefined;

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** In ms since the epoch; undefined before the first answer. */
  now(): number | undefined {
    return this.#offset === undefined ? undefined : Math.floor(this.#monotonic() + this.#offset);
  }

  /** `sentAt` is monotonic. */
  seen(redisNow: number, sentAt: number): void {
    this.#offset = redisNow - (sentAt + this.#monotonic()) / 2;
  }
}

/** Reconnects by itself. Calls have deadlines. */
export class RedisLink {
  readonly time: RedisTime;
  readonly client: Redis | Cluster;
  readonly #options: RedisLinkOptions;
  readonly #monotonic: () => number;
  #ping: NodeJS.Timeout | undefined;
  #answering = false;
  #beats = 0;

  constructor(options: RedisLinkOptions) {
    this.#options = options;
    this.#monotonic = options.monotonic ?? (() => performance.now());
    this.time = new RedisTime(this.#monotonic);
    this.client = redisClient(options.settings, options.name);
    for (const { operation, lua } of loadScripts())
      this.client.defineCommand(commandName(operation), { lua });
    this.client.on('error', () => undefined); // calls report errors; unheard, Node would print them
  }

  /** Connected, and the last call was answered. */
  get answering(): boolean {
    return this.#answering && this.client.status === 'ready';
  }

  /** Resolves after the first attempt; never rejects. */
  async start(): Promise<void> {
    await firstAttempt(this.client); // retries continue in the background
    await this.#beat();
    this.#ping ??= setInterval(() => {
      void this.#beat();
    }, PING_MS).unref();
  }

  stop(): void {
    clearInterval(this.#ping);
    this.client.disconnect();
  }

  /**
   * Rejects with `unavailable` if no answer comes in time: the script may have run, but will not
   * run later. Arguments that depend on the current state are a function, called again for a retry.
   */
  async run(
    operation: Operation,
    keys: readonly string[],
    args: ScriptArgs | (() => ScriptArgs),
  ): Promise<readonly unknown[]> {
    return await this.#timed(operation, () => this.#inTime(operation, keys, args));
  }

  async #inTime(
    operation: Operation,
    keys: readonly string[],
    args: ScriptArgs | (() => ScriptArgs),
  ): Promise<readonly unknown[]> {
    const sentAt = this.#monotonic();
    let answer = await this.#send(operation, keys, args);
    // Redis' clock was set, and is known again. A script that waited for long has no caller any
    // more.
    if (answer[0] === 'late' && this.#monotonic() - sentAt < COMMAND_MS) {
      this.time.seen(Number(answer[1]), this.#monotonic());
      answer = await this.#send(operation, keys, args);
    }
    if (answer[0] === 'late') throw away();
    return answer;
  }

  /** Like `run`, but the command may also run later. */
  async call<T>(command: (client: Redis | Cluster) => Promise<T>): Promise<T> {
    return await this.#timed('command', () => this.#called(command));
  }

  async #called<T>(command: (client: Redis | Cluster) => Promise<T>): Promise<T> {
    try {
      const answer = await command(this.client);
      this.#note(true);
      return answer;
    } catch (error) {
      throw this.#failed(error);
    }
  }

  nodes(): readonly RedisNode[] {
    const clients = this.client instanceof Cluster ? this.client.nodes('all') : [this.client];
    return clients.map(({ options: { host = '', port = 0 } }) => ({ host, port }));
  }

  async info(...sections: readonly string[]): Promise<readonly string[]> {
    return await Promise.all(this.#masters().map((node) => node.info(...sections)));
  }

  async #send(
    operation: Operation,
    keys: readonly string[],
    args: ScriptArgs | (() => ScriptArgs),
  ): Promise<readonly unknown[]> {
    const now = this.time.now();
    if (now === undefined) throw away();
    try {
      const answer = await commandOf(this.client, operation)(
        keys.length,
        ...keys,
        now + SCRIPT_MS,
        ...(typeof args === 'function' ? args() : args),
      );
      this.#note(true);
      if (!Array.isArray(answer)) throw new Error(`the answer of ${operation} is not a list`);
      return answer;
    } catch (error) {
      throw this.#failed(error);
    }
  }

  async #timed<T>(operation: string, work: () => Promise<T>): Promise<T> {
    const { metrics } = this.#options;
    const began = performance.now();
    try {
      return await work();
    } catch (error) {
      metrics.count('sandpool_store_failures_total', { store: 'redis', operation });
      throw error;
    } finally {
      metrics.observe(
        'sandpool_store_seconds',
        { store: 'redis', operation },
        (performance.now() - began) / 1_000,
      );
    }
  }

  #failed(error: unknown): unknown {
    if (error instanceof Refusal) return error;
    const { log, name } = this.#options;
    // Only the text: the error also carries the command's arguments, such as tokens.
    if (error instanceof Error && error.name === 'ReplyError')
      log.warn({ link: name, error: String(error) }, 'redis-refused');
    else this.#note(false);
    return away();
  }

  #note(answering: boolean): void {
    if (answering === this.#answering) return;
    this.#answering = answering;
    const { log, name } = this.#options;
    if (answering) log.info({ link: name }, 'redis-answers');
    else log.warn({ link: name }, 'redis-not-reachable');
  }

  /** Keeps every connection active. Never rejects. */
  async #beat(): Promise<void> {
    if (this.client instanceof Cluster && this.#beats++ % 3 === 0) this.client.refreshSlotsCache();
    const sentAt = this.#monotonic();
    try {
      const [first] = await Promise.all(this.#masters().map((node) => node.time()));
      if (!first) throw new Error('no node is known');
      const [seconds, micros] = first;
      this.time.seen(Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000), sentAt);
      this.#note(true);
    } catch {
      this.#note(false);
    }
  }

  #masters(): readonly Redis[] {
    return this.client instanceof Cluster ? this.client.nodes('master') : [this.client];
  }
}

/** If a cluster is down while it connects, the library never settles its promise. */
const firstAttempt = (client: Redis | Cluster): Promise<void> =>
  new Promise((resolve) => {
    const over = (): void => {
      client.off('close', over);
      resolve();
    };
    client.on('close', over);
    client.connect().then(over, over);
  });

const away = (): Refusal =>
  unavailable('Redis, which the replicas share, cannot be reached; try again shortly');

/** No command of Redis has such a name. */
const commandName = (operation: Operation): string => `sandpool_${operation}`;

/** The number of keys comes first. */
const commandOf = (
  client: Redis | Cluster,
  operation: Operation,
): ((...args: readonly (string | number)[]) => Promise<unknown>) => {
  const command: unknown = Reflect.get(client, commandName(operation));
  if (typeof command !== 'function') throw new Error(`this connection has no ${operation}`);
  return (...args) => Reflect.apply(command, client, args) as Promise<unknown>;
};
