import { randomUUID } from 'node:crypto';
import Redlock from 'redlock';
import type { Log } from '../../contracts/log.ts';
import { SHARDS } from '../../model/shards.ts';
import type { Keys } from '../keys.ts';
import type { RedisLink } from '../redis-link.ts';

/** Milliseconds that a lock lasts that nobody extends. */
export const LEASE_TTL_MS = 4_000;
/**
 * A replica is dead after this, before its locks end, so that they are taken the moment they do.
 */
export const REPLICA_DEAD_MS = 3_500;

/**
 * The part in leases that a replica says it takes; nobody waits for one that lives and takes no
 * leases.
 */
export type LeasePart = 'takes' | 'lives' | 'leaves';

/** The state of the shards in Redis at one moment. */
export interface LeaseReport {
  /** The live replicas, sorted. */
  readonly replicas: readonly string[];
  /** The live replicas that take leases. */
  readonly takers: readonly string[];
  /** By shard that is locked: whose lock it is, and its value. A shard that is left out is free. */
  readonly locks: ReadonlyMap<number, { readonly replica: string; readonly value: string }>;
}

/** A lock that was won. */
export interface ShardLock {
  /** Higher than that of every lock of the shard before. */
  readonly epoch: number;
  readonly value: string;
  /** Frees the shard. Rejects where that is not certain. */
  unlock(): Promise<void>;
}

/**
 * The calls of leases to Redis. Every call ends within seconds, and rejects where Redis does not
 * answer.
 */
export interface LeaseStore {
  /**
   * Says that this replica lives and extends its locks, given as their values by shard: a lock of
   * its own that is not among them is removed.
   */
  beat(part: LeasePart, held: ReadonlyMap<number, string>): Promise<LeaseReport>;
  /** Locks a shard; undefined where somebody holds it. */
  lock(shard: number): Promise<ShardLock | undefined>;
}

export interface RedisLeaseStoreDeps {
  /** A connection of its own: no claim stands in the way of an extension. */
  readonly link: RedisLink;
  readonly keys: Keys;
  readonly log: Log;
  /** This replica's name. */
  readonly replica: string;
}

/** Takes and frees locks by redlock, and extends all of them in one step with the heartbeat. */
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
      await unlock().catch(() => undefined); // else the next heartbeat removes it
      throw error;
    }
  }
}

/**
 * Locks whose value says whose they are: the name, a space, and what tells one lock from the next.
 */
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

/** Returns '' for the lock of a version that did not name its holder. */
const replicaOf = (value: string): string => value.slice(0, Math.max(0, value.lastIndexOf(' ')));
