import { rendezvous } from '../../lib/rendezvous.ts';
import { SHARDS } from '../../model/shards.ts';
import type { LeaseReport } from './lease-store.ts';

/** Then any replica may take a free shard. */
export const PATIENCE_MS = 2_000;

/**
 * Decides which shards a replica takes. Only the lock says who holds a shard. A free shard goes to
 * the replica that rendezvous hashing chooses, or to any other if that one does not take it.
 * Callers pass the time in ms.
 */
export class ShardView {
  readonly #replica: string;
  #report: LeaseReport = { replicas: [], takers: [], locks: new Map() };
  readonly #freeSince = new Map<number, number>();

  constructor(replica: string) {
    this.#replica = replica;
  }

  heard(report: LeaseReport, now: number): void {
    this.#report = report;
    for (const shard of ALL) {
      if (report.locks.has(shard)) this.#freeSince.delete(shard);
      else if (!this.#freeSince.has(shard)) this.#freeSince.set(shard, now);
    }
  }

  /** Resets the times of free shards. */
  unheard(): void {
    this.#freeSince.clear();
  }

  get replicas(): readonly string[] {
    return this.#report.replicas;
  }

  /** Without nameless holders. */
  get holders(): ReadonlyMap<number, string> {
    return new Map(
      [...this.#report.locks].flatMap(([shard, { replica }]) =>
        replica === '' ? [] : [[shard, replica]],
      ),
    );
  }

  valueOf(shard: number): string | undefined {
    return this.#report.locks.get(shard)?.value;
  }

  /** Undefined if none takes leases. */
  chosen(shard: number): string | undefined {
    return rendezvous(`shard-${shard}`, this.#report.takers);
  }

  due(now: number): readonly number[] {
    return [...this.#freeSince].flatMap(([shard, since]) =>
      this.#isChosen(shard) || now - since >= PATIENCE_MS ? [shard] : [],
    );
  }

  /** A shard is free, or moves to this replica. */
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
