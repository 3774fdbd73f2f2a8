export interface ClaimableMember {
  readonly name: string;
  readonly idle: number;
  /** Higher is preferred. */
  readonly priority: number;
  readonly latencyMs: number;
}

/** First members with an idle instance, then by priority, latency and name. */
export const claimOrderOf = <T extends ClaimableMember>(members: readonly T[]): readonly T[] =>
  members.toSorted(
    (a, b) =>
      Number(b.idle > 0) - Number(a.idle > 0) ||
      b.priority - a.priority ||
      a.latencyMs - b.latencyMs ||
      (a.name < b.name ? -1 : 1),
  );
