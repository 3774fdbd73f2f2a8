import { Cluster, type Redis } from 'ioredis';
import type { Log } from '../contracts/log.ts';
import type { Metrics } from '../contracts/metrics.ts';
import { Refusal, unavailable } from '../model/refusals.ts';
import { COMMAND_MS, redisClient, type RedisNode } from './connection.ts';
import { loadScripts, type Operation } from './script.ts';
import type { RedisSettings } from './settings.ts';
import type { Keys } from './keys.ts';

/** Holds by what a part of the coordination reaches Redis, and under which keys. */
export interface RedisPlace {
  readonly link: RedisLink;
  readonly keys: Keys;
}

/** Sooner than its caller gives up: Redis' time is known to within a journey of a ping. */
export const SCRIPT_MS = 900;
const PING_MS = 2_000;

type ScriptArgs = readonly (string | number)[];

export interface RedisLinkOptions {
  readonly settings: RedisSettings;
  /** This connection's name, shown by Redis' CLIENT LIST and in log lines. */
  readonly name: string;
  readonly log: Log;
  readonly metrics: Metrics;
  /** ms; never set back. */
  readonly monotonic?: () => number;
}

/**
 * Redis' clock as this process last saw it, carried on by its own monotonic clock: setting the
 * machine's clock does not move it. `unknown` until the first answer.
 */
class RedisTime {
  readonly #monotonic: () => number;
  #offset: number | undefined;

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** ms since the epoch; undefined while Redis was never asked. */
  now(): number | undefined {
    return this.#offset === undefined ? undefined : Math.floor(this.#monotonic() + this.#offset);
  }

  /**
   * Takes the time that Redis said, of a question that was sent at `sentAt` by the monotonic clock.
   */
  seen(redisNow: number, sentAt: number): void {
    this.#offset = redisNow - (sentAt + this.#monotonic()) / 2;
  }
}

/** A connection to Redis that is made again whenever it is lost, and whose calls end in time. */
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
    this.client.on('error', () => undefined); // told by what fails; unobserved it would be printed
  }

  /** Whether there is a connection, and the last call was answered. */
  get answering(): boolean {
    return this.#answering && this.client.status === 'ready';
  }

  /**
   * Connects, and goes on trying where that fails. Resolves after the first attempt; never rejects.
   */
  async start(): Promise<void> {
    await firstAttempt(this.client); // its retries go on
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
   * Rejects with `unavailable` where there is no answer in time: then it may have run, and does not
   * run later. Arguments that say how things stand are given as a function: what is sent once more
   * says it anew.
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
    // Redis' clock was set: now it is known. A script that waited for long has nobody to answer.
    if (answer[0] === 'late' && this.#monotonic() - sentAt < COMMAND_MS) {
      this.time.seen(Number(answer[1]), this.#monotonic());
      answer = await this.#send(operation, keys, args);
    }
    if (answer[0] === 'late') throw away();
    return answer;
  }

  /** A plain command, under the same promises but the one for later. */
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

  /** The nodes that are known now. */
  nodes(): readonly RedisNode[] {
    const clients = this.client instanceof Cluster ? this.client.nodes('all') : [this.client];
    return clients.map(({ options: { host = '', port = 0 } }) => ({ host, port }));
  }

  /** INFO of each node that takes writes. */
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
      if (!Array.isArray(answer)) throw new Error(`${operation} answered no list`);
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
    // The text alone: the error carries the command's arguments, tokens among them.
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
    else log.warn({ link: name }, 'redis-away');
  }

  /**
   * Learns the time and which node has what, and keeps every node's connection from being silent.
   * Never rejects.
   */
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

/**
 * Resolves once it is connected or has failed. A cluster that is down as it connects ends the
 * connection, and leaves the library's promise without an end.
 */
const firstAttempt = (client: Redis | Cluster): Promise<void> =>
  new Promise((resolve) => {
    const over = (): void => {
      client.off('close', over);
      resolve();
    };
    client.on('close', over);
    client.connect().then(over, over);
  });

/** Makes the refusal of every call that found no Redis. */
const away = (): Refusal =>
  unavailable('what the replicas share (Redis) is out of reach; try again shortly');

/** Under a name that no command of Redis has. */
const commandName = (operation: Operation): string => `sandpool_${operation}`;

/** Finds the command that `defineCommand` has added; the count of keys comes first. */
const commandOf = (
  client: Redis | Cluster,
  operation: Operation,
): ((...args: readonly (string | number)[]) => Promise<unknown>) => {
  const command: unknown = Reflect.get(client, commandName(operation));
  if (typeof command !== 'function') throw new Error(`this connection has no ${operation}`);
  return (...args) => Reflect.apply(command, client, args) as Promise<unknown>;
};
