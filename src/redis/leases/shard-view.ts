import { rendezvous } from '../../lib/rendezvous.ts';
import { SHARDS } from '../../model/shards.ts';
import type { LeaseReport } from './lease-store.ts';

/** A free shard that its chosen replica does not take within this is anybody's. */
export const PATIENCE_MS = 2_000;

/**
 * Decides which shards a replica is to take, by what its heartbeats returned. The lock alone says
 * who holds a shard: one without a lock is free, and is taken by the replica that rendezvous
 * hashing chooses for it, or by any other where that one does not. Has no clock: the time is given,
 * in ms.
 */
export class ShardView {
  readonly #replica: string;
  #report: LeaseReport = { replicas: [], takers: [], locks: new Map() };
  /** By free shard: since when each heartbeat has shown it free. */
  readonly #freeSince = new Map<number, number>();

  constructor(replica: string) {
    this.#replica = replica;
  }

  /** Takes in what a heartbeat returned. */
  heard(report: LeaseReport, now: number): void {
    this.#report = report;
    for (const shard of ALL) {
      if (report.locks.has(shard)) this.#freeSince.delete(shard);
      else if (!this.#freeSince.has(shard)) this.#freeSince.set(shard, now);
    }
  }

  /** Forgets for how long shards were free: a heartbeat was not answered. */
  unheard(): void {
    this.#freeSince.clear();
  }

  get replicas(): readonly string[] {
    return this.#report.replicas;
  }

  /** Who holds which shard; one whose holder is not known by name is left out. */
  get holders(): ReadonlyMap<number, string> {
    return new Map(
      [...this.#report.locks].flatMap(([shard, { replica }]) =>
        replica === '' ? [] : [[shard, replica]],
      ),
    );
  }

  /** The value of the shard's lock; undefined where it is free. */
  valueOf(shard: number): string | undefined {
    return this.#report.locks.get(shard)?.value;
  }

  /** Which replica is to have the shard; undefined where nobody takes leases. */
  chosen(shard: number): string | undefined {
    return rendezvous(`shard-${shard}`, this.#report.takers);
  }

  /** Free shards that this replica is to take now. */
  due(now: number): readonly number[] {
    return [...this.#freeSince].flatMap(([shard, since]) =>
      this.#isChosen(shard) || now - since >= PATIENCE_MS ? [shard] : [],
    );
  }

  /**
   * Whether it is worth to look again soon: a shard is free, or another replica has one that is to
   * be this replica's.
   */
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
