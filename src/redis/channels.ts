import type { Cluster, Redis } from 'ioredis';
import type { DemandWord, DemandWords, Revocations } from '../contracts/coordination.ts';
import type { Log } from '../contracts/log.ts';
import type { Keys } from './keys.ts';
import { redisClient, type RedisLink } from './redis-link.ts';
import type { RedisSettings } from './settings.ts';

/** A connection without a byte for some seconds counts as dead. */
const PING_MS = 2_000;

export interface RedisChannelsDeps {
  /** By which it tells. */
  readonly link: RedisLink;
  readonly settings: RedisSettings;
  readonly keys: Keys;
  readonly log: Log;
  /** Channels that others follow, and tell by. */
  readonly others: readonly string[];
}

/**
 * Revoked keys and what claims lack, over channels of Redis, heard on a connection of their own. A channel keeps nothing: what is told
 * while the connection is away is not heard, and the records, or later claims, have to show it.
 */
export class RedisChannels implements Revocations, DemandWords {
  readonly #link: RedisLink;
  readonly #keys: Keys;
  readonly #log: Log;
  readonly #listener: Redis | Cluster;
  /** By channel. */
  readonly #followers: ReadonlyMap<string, Set<(text: string) => void>>;
  #ping: NodeJS.Timeout | undefined;
  #subscribed = false;

  constructor({ link, settings, keys, log, others }: RedisChannelsDeps) {
    this.#link = link;
    this.#keys = keys;
    this.#log = log;
    this.#followers = new Map([keys.revoked, keys.demand, ...others].map((channel) => [channel, new Set()]));
    this.#listener = redisClient(settings, 'channels');
    this.#listener.on('error', () => undefined); // unobserved it would be printed
    this.#listener.on('message', (channel: string, text: string) => {
      for (const report of this.#followers.get(channel) ?? []) report(text);
    });
    this.#listener.on('ready', () => { void this.#subscribe(); });
  }

  /** Resolves after the first attempt; never rejects. */
  async start(): Promise<void> {
    this.#ping ??= setInterval(() => { void this.#beat(); }, PING_MS).unref();
    await this.#listener.connect().then(() => this.#subscribe(), () => undefined); // its retries go on
  }

  stop(): void {
    clearInterval(this.#ping);
    this.#listener.disconnect();
  }

  tellRevoked(keyId: string): void { this.tell(this.#keys.revoked, keyId); }

  followRevoked(report: (keyId: string) => void): () => void { return this.follow(this.#keys.revoked, report); }

  tellDemand({ kind, poolUid, principal }: DemandWord): void { this.tell(this.#keys.demand, `${kind} ${poolUid} ${principal}`); }

  followDemand(report: (word: DemandWord) => void): () => void {
    return this.follow(this.#keys.demand, (text) => {
      const word = demandIn(text);
      if (word) report(word);
    });
  }

  /** Never throws, never waits. */
  tell(channel: string, text: string): void {
    this.#link.call((client) => client.publish(channel, text))
      .catch((error: unknown) => { this.#log.debug({ channel, error: String(error) }, 'word-not-told'); });
  }

  /** Reports what is told over one of the channels. Answers the way to end it. `report` must not throw. */
  follow(channel: string, report: (text: string) => void): () => void {
    this.#followers.get(channel)?.add(report);
    return () => { this.#followers.get(channel)?.delete(report); };
  }

  /** Keeps the connection from being silent. Never rejects. */
  async #beat(): Promise<void> {
    if (this.#subscribed) await this.#listener.ping().catch(() => undefined);
    else await this.#subscribe();
  }

  /** May be repeated; never rejects. What was subscribed once is subscribed again by each new connection. */
  async #subscribe(): Promise<void> {
    try {
      await this.#listener.subscribe(...this.#followers.keys());
      this.#subscribed = true;
    } catch (error) {
      this.#log.debug({ error: String(error) }, 'channels-not-followed');
    }
  }
}

const KINDS = ['waits', 'refused', 'served'] as const;

/** Undefined for what a later version may tell. */
const demandIn = (text: string): DemandWord | undefined => {
  const [said, poolUid, principal] = text.split(' ');
  const kind = KINDS.find((known) => known === said);
  return kind && poolUid && principal ? { kind, poolUid, principal } : undefined;
};
