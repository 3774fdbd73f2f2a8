/** A member that can serve a claim by its env's name. */
export interface ClaimableMember {
  readonly name: string;
  readonly idle: number;
  /** Higher is preferred. */
  readonly priority: number;
  /** Round-trip time to its cluster; 0 for this cluster. */
  readonly latencyMs: number;
}

/**
 * Sorts members for a claim by their env's name: first members with an idle instance, then by
 * priority, latency and name.
 */
export const claimOrderOf = <T extends ClaimableMember>(members: readonly T[]): readonly T[] =>
  members.toSorted(
    (a, b) =>
      Number(b.idle > 0) - Number(a.idle > 0) ||
      b.priority - a.priority ||
      a.latencyMs - b.latencyMs ||
      (a.name < b.name ? -1 : 1),
  );
