import { randomUUID } from 'node:crypto';
import Redlock from 'redlock';
import type { Log } from '../../contracts/log.ts';
import { SHARDS } from '../../model/shards.ts';
import type { Keys } from '../keys.ts';
import type { RedisLink } from '../redis-link.ts';

/** In ms, without extension. */
export const LEASE_TTL_MS = 4_000;
/** Slightly before its locks end, so that others can take them at once. */
export const REPLICA_DEAD_MS = 3_500;

/** Others do not wait for a replica that takes none. */
export type LeasePart = 'takes' | 'lives' | 'leaves';

export interface LeaseReport {
  /** Sorted. */
  readonly replicas: readonly string[];
  readonly takers: readonly string[];
  /** By shard. Free shards are missing. */
  readonly locks: ReadonlyMap<number, { readonly replica: string; readonly value: string }>;
}

export interface ShardLock {
  /** Higher than every earlier epoch of the shard. */
  readonly epoch: number;
  readonly value: string;
  /** Rejects if the outcome is uncertain. */
  unlock(): Promise<void>;
}

/** Every call ends within seconds, and rejects if Redis does not answer. */
export interface LeaseStore {
  /**
   * Reports this replica alive, extends the locks with these values by shard, and removes its
   * others.
   */
  beat(part: LeasePart, held: ReadonlyMap<number, string>): Promise<LeaseReport>;
  /** Undefined if it is taken. */
  lock(shard: number): Promise<ShardLock | undefined>;
}

export interface RedisLeaseStoreDeps {
  /** Separate, so that claims do not delay extensions. */
  readonly link: RedisLink;
  readonly keys: Keys;
  readonly log: Log;
  readonly replica: string;
}

/** Extends all locks in the same script as the heartbeat. */
export class RedisLeaseStore implements LeaseStore {
  readonly #deps: RedisLeaseStoreDeps;
  readonly #locks: NamedLocks;

  constructor(deps: RedisLeaseStoreDeps) {
    this.#deps = deps;
    this.#locks = new NamedLocks(deps);
  }

  async beat(part: LeasePart, held: ReadonlyMap<number, string>): Promise<LeaseReport> {
    const { link, keys, replica } = this.#deps;
    const shards = Array.from({ length: SHARDS }, (_, shard) => shard);
    const [, ...answer] = await link.run(
      'lease_heartbeat',
      [keys.replicas, keys.leaseTakers, ...shards.map((shard) => keys.lease(shard))],
      [
        replica,
        part,
        REPLICA_DEAD_MS,
        LEASE_TTL_MS,
        ...shards.map((shard) => held.get(shard) ?? ''),
      ],
    );
    const names = (): readonly string[] =>
      answer.splice(0, Number(answer.shift())).map(String).sort();
    const [replicas, takers, values] = [names(), names(), answer.map(String)];
    return {
      replicas,
      takers,
      locks: new Map(
        values.flatMap((value, shard) =>
          value === '' ? [] : [[shard, { replica: replicaOf(value), value }]],
        ),
      ),
    };
  }

  async lock(shard: number): Promise<ShardLock | undefined> {
    const { link, keys } = this.#deps;
    const lock = await Promise.resolve(this.#locks.lock(keys.lease(shard), LEASE_TTL_MS)).catch(
      () => undefined,
    );
    if (!lock) return undefined;
    const unlock = async (): Promise<void> => {
      await lock.unlock();
    };
    try {
      const [, epoch] = await link.run('next_epoch', [keys.epochs], [shard]);
      return { epoch: Number(epoch), value: lock.value, unlock };
    } catch (error) {
      await unlock().catch(() => undefined); // the next heartbeat removes it otherwise
      throw error;
    }
  }
}

/** The value is the holder's name, a space, and a unique part. */
class NamedLocks extends Redlock {
  readonly #replica: string;

  constructor({ link, log, replica }: RedisLeaseStoreDeps) {
    super([link.client], { retryCount: 0, driftFactor: 0 });
    this.#replica = replica;
    this.on('clientError', (error) => {
      log.debug({ error: String(error) }, 'lease-call-failed');
    });
  }

  protected override _random(): string {
    return `${this.#replica} ${randomUUID()}`;
  }
}

/** '' without a holder's name. */
const replicaOf = (value: string): string => value.slice(0, Math.max(0, value.lastIndexOf(' ')));
