/** In ms, since a manager replica last confirmed the start's link. */
export const START_HELD_MS = 5_000;
/** In ms, since the start last asked to link. Waiting starts ask at least this often. */
export const START_WANTED_MS = 5_000;

export interface ClusterStart {
  readonly clusterId: string;
  readonly start: string;
}

export interface HeldStart {
  readonly start: string;
  /** Another start asked to link within START_WANTED_MS. */
  readonly isWanted: boolean;
}

export interface ClusterStarts {
  /**
   * Links each start to this replica for START_HELD_MS. If another start of the cluster is linked
   * to any replica, marks the requested one as wanted instead. Results are in the order of the
   * input.
   */
  holdStarts(asked: readonly ClusterStart[]): Promise<readonly HeldStart[]>;
  releaseStart(given: ClusterStart): Promise<void>;
}
