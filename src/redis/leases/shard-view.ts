import { rendezvous } from '../../lib/rendezvous.ts';
import { SHARDS } from '../../model/shards.ts';
import type { LeaseReport } from './lease-store.ts';

/** If the chosen replica does not take a free shard within this time in ms, any replica may. */
export const PATIENCE_MS = 2_000;

/**
 * Decides which shards a replica takes, from its heartbeats' answers. Only the lock says who holds
 * a shard. A free shard goes to the replica that rendezvous hashing chooses, or to any other if
 * that one does not take it. Has no clock: callers pass the time in ms.
 */
export class ShardView {
  readonly #replica: string;
  #report: LeaseReport = { replicas: [], takers: [], locks: new Map() };
  /** Since when heartbeats have shown a shard free, by shard. */
  readonly #freeSince = new Map<number, number>();

  constructor(replica: string) {
    this.#replica = replica;
  }

  /** Records a heartbeat's answer. */
  heard(report: LeaseReport, now: number): void {
    this.#report = report;
    for (const shard of ALL) {
      if (report.locks.has(shard)) this.#freeSince.delete(shard);
      else if (!this.#freeSince.has(shard)) this.#freeSince.set(shard, now);
    }
  }

  /** Resets the times of free shards after an unanswered heartbeat. */
  unheard(): void {
    this.#freeSince.clear();
  }

  get replicas(): readonly string[] {
    return this.#report.replicas;
  }

  /** Holders by shard, without nameless holders. */
  get holders(): ReadonlyMap<number, string> {
    return new Map(
      [...this.#report.locks].flatMap(([shard, { replica }]) =>
        replica === '' ? [] : [[shard, replica]],
      ),
    );
  }

  /** The value of the shard's lock; undefined if it is free. */
  valueOf(shard: number): string | undefined {
    return this.#report.locks.get(shard)?.value;
  }

  /** The replica chosen for the shard; undefined if none takes leases. */
  chosen(shard: number): string | undefined {
    return rendezvous(`shard-${shard}`, this.#report.takers);
  }

  /** Free shards that this replica takes now. */
  due(now: number): readonly number[] {
    return [...this.#freeSince].flatMap(([shard, since]) =>
      this.#isChosen(shard) || now - since >= PATIENCE_MS ? [shard] : [],
    );
  }

  /** Whether to check again soon: a shard is free, or moves from another replica to this one. */
  isChanging(): boolean {
    return ALL.some(
      (shard) =>
        !this.#report.locks.has(shard) ||
        (this.#isChosen(shard) && this.#report.locks.get(shard)?.replica !== this.#replica),
    );
  }

  #isChosen(shard: number): boolean {
    return this.chosen(shard) === this.#replica;
  }
}

const ALL = Array.from({ length: SHARDS }, (_, shard) => shard);
