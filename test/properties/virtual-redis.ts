import {
  LEASE_TTL_MS,
  REPLICA_DEAD_MS,
  type LeasePart,
  type LeaseReport,
  type LeaseStore,
  type ShardLock,
} from '../../src/redis/leases/lease-store.ts';
import { COMMAND_MS } from '../../src/redis/connection.ts';
import { SCRIPT_MS } from '../../src/redis/redis-link.ts';
import type { VirtualProcess, VirtualTime } from './virtual-time.ts';

interface Content {
  readonly locks: Map<number, { readonly value: string; expiresAt: number }>;
  /** Last sign of life, by replica. */
  readonly replicas: Map<string, number>;
  readonly takers: Map<string, number>;
  readonly epochs: Map<number, number>;
}

const copyOf = ({ locks, replicas, takers, epochs }: Content): Content => ({
  locks: new Map([...locks].map(([shard, lock]) => [shard, { ...lock }])),
  replicas: new Map(replicas),
  takers: new Map(takers),
  epochs: new Map(epochs),
});

/** By the meaning of the leases' scripts. */
export class VirtualRedis {
  readonly #time: VirtualTime;
  #content: Content = {
    locks: new Map(),
    replicas: new Map(),
    takers: new Map(),
    epochs: new Map(),
  };
  /** Differs after a failover. */
  #clockAhead = 0;
  #copies: { readonly at: number; readonly content: Content }[] = [];
  #waiting: (() => void)[] = [];
  stoppedUntil = 0;
  awayUntil = 0;
  slowUntil = 0;
  /** Stops once when the next lock is freed. */
  stallsAtUnlockMs = 0;

  constructor(time: VirtualTime) {
    this.#time = time;
  }

  /** Delays commands. */
  stop(ms: number): void {
    this.stoppedUntil = Math.max(this.stoppedUntil, this.#time.now + ms);
    this.#time.after(ms, () => {
      this.#goOn();
    });
  }

  flush(): void {
    this.#content = { locks: new Map(), replicas: new Map(), takers: new Map(), epochs: new Map() };
  }

  /** Continues with older content, by another clock. */
  failOver(ageMs: number, clockAhead: number): void {
    this.#content = copyOf(
      this.#copies.find(({ at }) => at >= this.#time.now - ageMs)?.content ?? this.#content,
    );
    this.#clockAhead = clockAhead;
  }

  /** Never runs the command while Redis is away. */
  arrive(command: () => void): void {
    if (this.#time.now < this.awayUntil) return;
    if (this.#time.now < this.stoppedUntil) this.#waiting.push(command);
    else command();
  }

  get now(): number {
    return this.#time.now + this.#clockAhead;
  }

  beat(replica: string, part: LeasePart, held: ReadonlyMap<number, string>): LeaseReport {
    this.#keepCopy();
    const { locks, replicas, takers } = this.#content;
    const liveIn = (names: Map<string, number>, isIn: boolean): readonly string[] => {
      for (const [name, at] of names)
        if (at > this.now || at < this.now - 60_000) names.delete(name);
      if (isIn) names.set(replica, this.now);
      else names.delete(replica);
      return [...names]
        .flatMap(([name, at]) => (at >= this.now - REPLICA_DEAD_MS ? [name] : []))
        .sort();
    };
    for (const [shard, lock] of locks) {
      if (lock.value === held.get(shard) && this.#lockOf(shard))
        lock.expiresAt = this.now + LEASE_TTL_MS;
      else if (lock.value.startsWith(`${replica} `)) locks.delete(shard);
      else lock.expiresAt = Math.min(lock.expiresAt, this.now + LEASE_TTL_MS);
    }
    return {
      replicas: liveIn(replicas, part !== 'leaves'),
      takers: liveIn(takers, part === 'takes'),
      locks: new Map(
        [...locks.keys()].flatMap((shard) => {
          const value = this.#lockOf(shard);
          return value === undefined
            ? []
            : [[shard, { value, replica: value.slice(0, value.lastIndexOf(' ')) }]];
        }),
      ),
    };
  }

  lock(shard: number, value: string): boolean {
    if (this.#lockOf(shard) !== undefined) return false;
    this.#content.locks.set(shard, { value, expiresAt: this.now + LEASE_TTL_MS });
    return true;
  }

  unlock(shard: number, value: string): void {
    if (this.#lockOf(shard) === value) this.#content.locks.delete(shard);
    if (this.stallsAtUnlockMs > 0) this.stop(this.stallsAtUnlockMs);
    this.stallsAtUnlockMs = 0;
  }

  nextEpoch(shard: number): number {
    const epoch = Math.max((this.#content.epochs.get(shard) ?? 0) + 1, this.now);
    this.#content.epochs.set(shard, epoch);
    return epoch;
  }

  #lockOf(shard: number): string | undefined {
    const lock = this.#content.locks.get(shard);
    return lock && lock.expiresAt > this.now ? lock.value : undefined;
  }

  #keepCopy(): void {
    const last = this.#copies.at(-1);
    if (last && this.#time.now - last.at < 500) return;
    this.#copies = [
      ...this.#copies.slice(-20),
      { at: this.#time.now, content: copyOf(this.#content) },
    ];
  }

  #goOn(): void {
    if (this.#time.now < this.stoppedUntil) return;
    for (const command of this.#waiting.splice(0)) this.arrive(command);
  }
}

export interface VirtualStoreDeps {
  readonly time: VirtualTime;
  readonly redis: VirtualRedis;
  readonly process: VirtualProcess;
  readonly replica: string;
  /** From 0 to 1. */
  readonly random: () => number;
}

/** Commands arrive in order, and end within a second for their sender. */
export class VirtualLeaseStore implements LeaseStore {
  readonly #deps: VirtualStoreDeps;
  #locks = 0;
  #lastArrival = 0;
  locksNothing = false;
  /** Until then nothing passes, and nothing is refused. */
  cutUntil = 0;

  constructor(deps: VirtualStoreDeps) {
    this.#deps = deps;
  }

  beat(part: LeasePart, held: ReadonlyMap<number, string>): Promise<LeaseReport> {
    const { redis, replica } = this.#deps;
    return this.#send(() => redis.beat(replica, part, held), { endsWithCaller: true });
  }

  async lock(shard: number): Promise<ShardLock | undefined> {
    const { redis, replica } = this.#deps;
    if (this.locksNothing) return undefined;
    const value = `${replica} ${this.#locks++}`;
    const unlock = (): Promise<void> =>
      this.#send(
        () => {
          redis.unlock(shard, value);
        },
        { endsWithCaller: false },
      );
    const isLocked = await this.#send(() => redis.lock(shard, value), {
      endsWithCaller: false,
    }).catch(() => 'unknown');
    if (isLocked !== true) {
      if (isLocked === 'unknown') await unlock().catch(() => undefined);
      return undefined;
    }
    try {
      return {
        value,
        unlock,
        epoch: await this.#send(() => redis.nextEpoch(shard), { endsWithCaller: true }),
      };
    } catch (error) {
      await unlock().catch(() => undefined);
      throw error;
    }
  }

  #send<T>(command: () => T, { endsWithCaller }: { readonly endsWithCaller: boolean }): Promise<T> {
    const { time, redis, process } = this.#deps;
    if (time.now < redis.awayUntil) return Promise.reject(new Error('away'));
    const sentAt = time.now;
    this.#lastArrival = Math.max(this.#lastArrival, time.now + this.#delay());
    return new Promise((resolve, reject) => {
      process.after(COMMAND_MS, () => {
        reject(new Error('timed out'));
      });
      time.after(this.#lastArrival - time.now, () => {
        if (time.now < this.cutUntil) return;
        redis.arrive(() => {
          if (endsWithCaller && time.now > sentAt + SCRIPT_MS) return;
          const answer = command();
          time.after(
            this.#delay(),
            () => {
              resolve(answer);
            },
            process,
          );
        });
      });
    });
  }

  #delay(): number {
    const { time, redis, random } = this.#deps;
    return time.now < redis.slowUntil ? random() * 1_200 : random() * 3;
  }
}
