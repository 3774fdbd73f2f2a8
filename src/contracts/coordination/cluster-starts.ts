/** A start is held for so long after a replica of the manager last said that it is linked there. */
export const START_HELD_MS = 5_000;
/** Another start asks for its place at least so often, as long as it wants it. */
export const START_WANTED_MS = 5_000;

/** One start of the daemon of a worker cluster whose store is one machine's. */
export interface ClusterStart {
  readonly clusterId: string;
  readonly start: string;
}

export interface HeldStart {
  /** The start that is linked. */
  readonly start: string;
  /** Another one asked for its place within START_WANTED_MS. */
  readonly isWanted: boolean;
}

/** Which start of a worker cluster is linked, at all replicas of its manager. */
export interface ClusterStarts {
  /**
   * Notes that each start is linked to this replica, for START_HELD_MS, unless another start of the
   * cluster is linked to any: that one is wanted from now on. Answers in the same order.
   */
  holdStarts(asked: readonly ClusterStart[]): Promise<readonly HeldStart[]>;
  /** The start is not linked to this replica any more. May be repeated, also by who holds none. */
  releaseStart(given: ClusterStart): Promise<void>;
}
