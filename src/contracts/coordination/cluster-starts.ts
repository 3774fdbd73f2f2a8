/** Time that a start stays linked after a manager replica last confirmed its link, in ms. */
export const START_HELD_MS = 5_000;
/**
 * Time that a start stays wanted after it last asked to link, in ms. Waiting starts ask at least
 * this often.
 */
export const START_WANTED_MS = 5_000;

/** One start of the daemon of a worker cluster with a single-machine store. */
export interface ClusterStart {
  readonly clusterId: string;
  readonly start: string;
}

export interface HeldStart {
  /** The linked start. */
  readonly start: string;
  /** Another start asked to link within START_WANTED_MS. */
  readonly isWanted: boolean;
}

/** The linked start of each worker cluster, shared by all replicas of its manager. */
export interface ClusterStarts {
  /**
   * Records for START_HELD_MS that each start is linked to this replica. If another start of the
   * cluster is linked to any replica, marks the requested start as wanted instead. Results are in
   * the order of the input.
   */
  holdStarts(asked: readonly ClusterStart[]): Promise<readonly HeldStart[]>;
  /**
   * Records that the start is no longer linked to this replica. Idempotent, also for a start that
   * is not linked.
   */
  releaseStart(given: ClusterStart): Promise<void>;
}
