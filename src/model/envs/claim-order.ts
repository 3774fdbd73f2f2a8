/** A member of an env that a claim by the env's name may go to. */
export interface ClaimableMember {
  readonly name: string;
  readonly idle: number;
  /** The higher one is preferred. */
  readonly priority: number;
  /** How far its cluster is, there and back; 0: it is this one. */
  readonly latencyMs: number;
}

/**
 * Sorts members for a claim by their env's name: those with an idle instance first, then by
 * priority, then the nearest, then by name.
 */
export const claimOrderOf = <T extends ClaimableMember>(members: readonly T[]): readonly T[] =>
  members.toSorted(
    (a, b) =>
      Number(b.idle > 0) - Number(a.idle > 0) ||
      b.priority - a.priority ||
      a.latencyMs - b.latencyMs ||
      (a.name < b.name ? -1 : 1),
  );
