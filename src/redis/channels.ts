import type {
  DemandSignal,
  DemandSignals,
  Revocations,
} from '../contracts/coordination/signals.ts';
import type { Log } from '../contracts/log.ts';
import type { Keys } from './keys.ts';
import type { RedisLink } from './redis-link.ts';
import type { RedisSettings } from './settings.ts';
import { RedisSubscription } from './subscription.ts';

export interface RedisChannelsDeps {
  readonly link: RedisLink;
  readonly settings: RedisSettings;
  readonly keys: Keys;
  readonly log: Log;
  readonly others: readonly string[];
}

/**
 * Channels store nothing: messages are lost while the receiving connection is down. Once it is
 * back, followers of revoked keys are told to read the records.
 */
export class RedisChannels implements Revocations, DemandSignals {
  readonly #link: RedisLink;
  readonly #keys: Keys;
  readonly #log: Log;
  readonly #subscription: RedisSubscription;
  readonly #missed = new Set<() => void>();
  readonly #followers: ReadonlyMap<string, Set<(text: string) => void>>;
  #stoodBefore = false;

  constructor({ link, settings, keys, log, others }: RedisChannelsDeps) {
    this.#link = link;
    this.#keys = keys;
    this.#log = log;
    this.#followers = new Map(
      [keys.revoked, keys.demand, ...others].map((channel) => [channel, new Set()]),
    );
    this.#subscription = new RedisSubscription({
      settings,
      log,
      nodes: () => link.nodes(),
      channels: [...this.#followers.keys()],
      heard: (channel, text) => {
        for (const report of this.#followers.get(channel) ?? []) report(text);
      },
      stands: () => {
        this.#standsAgain();
      },
    });
  }

  /** As far as known. */
  get stands(): boolean {
    return this.#subscription.stands;
  }

  /** Resolves after the first attempt; never rejects. */
  async start(): Promise<void> {
    await this.#subscription.start();
  }

  stop(): void {
    this.#subscription.stop();
  }

  publishRevocation(keyId: string): void {
    this.tell(this.#keys.revoked, keyId);
  }

  subscribeRevocations(
    report: (keyId: string) => void,
    missed: () => void = () => undefined,
  ): () => void {
    const unfollow = this.follow(this.#keys.revoked, report);
    const own = (): void => {
      missed();
    }; // counts each registration, even of one function
    this.#missed.add(own);
    return () => {
      unfollow();
      this.#missed.delete(own);
    };
  }

  publishDemand({ kind, poolUid, principal }: DemandSignal): void {
    this.tell(this.#keys.demand, `${kind} ${poolUid} ${principal}`);
  }

  subscribeDemand(report: (word: DemandSignal) => void): () => void {
    return this.follow(this.#keys.demand, (text) => {
      const word = demandIn(text);
      if (word) report(word);
    });
  }

  /** Never throws, never waits. */
  tell(channel: string, text: string): void {
    this.#link
      .call((client) => client.publish(channel, text))
      .catch((error: unknown) => {
        this.#log.debug({ channel, error: String(error) }, 'replica-message-not-sent');
      });
  }

  /** Returns a function that stops this. `report` must not throw. */
  follow(channel: string, report: (text: string) => void): () => void {
    this.#followers.get(channel)?.add(report);
    return () => {
      this.#followers.get(channel)?.delete(report);
    };
  }

  #standsAgain(): void {
    if (this.#stoodBefore) for (const missed of this.#missed) missed();
    this.#stoodBefore = true;
  }
}

const KINDS = ['waits', 'refused', 'served'] as const;

/** Undefined for messages of unknown form. */
const demandIn = (text: string): DemandSignal | undefined => {
  const [said, poolUid, principal] = text.split(' ');
  const kind = KINDS.find((known) => known === said);
  return kind && poolUid && principal ? { kind, poolUid, principal } : undefined;
};
