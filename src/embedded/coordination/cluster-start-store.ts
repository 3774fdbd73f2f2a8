import type { Clock } from '../../contracts/clock.ts';
import {
  START_HELD_MS,
  START_WANTED_MS,
  type ClusterStarts,
} from '../../contracts/coordination/cluster-starts.ts';

interface Entry {
  readonly start: string;
  /** Ends per replica. */
  readonly linked: Map<string, number>;
  wantedAt: number;
}

export class ClusterStartStore {
  readonly #clock: Clock;
  readonly #held = new Map<string, Entry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  of(replica: string): ClusterStarts {
    return {
      holdStarts: async (asked) =>
        asked.map(({ clusterId, start }) => {
          const now = this.#clock.now();
          const entry = this.#entryFor(clusterId, start);
          if (entry.start === start) entry.linked.set(replica, now + START_HELD_MS);
          else entry.wantedAt = now;
          return { start: entry.start, isWanted: now - entry.wantedAt < START_WANTED_MS };
        }),
      releaseStart: async ({ clusterId, start }) => {
        const entry = this.#held.get(clusterId);
        if (entry?.start !== start) return;
        entry.linked.delete(replica);
        if (entry.linked.size === 0) this.#held.delete(clusterId);
      },
    };
  }

  /** Like a lost store. */
  clear(): void {
    this.#held.clear();
  }

  #entryFor(clusterId: string, start: string): Entry {
    const entry = this.#held.get(clusterId);
    const isLinked = [...(entry?.linked.values() ?? [])].some((end) => end > this.#clock.now());
    if (entry && (entry.start === start || isLinked)) return entry;
    const made: Entry = { start, linked: new Map(), wantedAt: -Infinity };
    this.#held.set(clusterId, made);
    return made;
  }
}
