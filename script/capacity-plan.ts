/** Arithmetic over costs that `script/bench` measured. */

/**
 * Measured on the slowest machine; processor time in ms, memory in KiB; Kubernetes unless noted.
 */
const COSTS = {
  claim: 1.03,
  /** For the leader: an instance launched, seen to be ready and reported. */
  launchOrder: 2.7,
  /**
   * For every replica: a change read and applied, from the start with 20,000 instances (6.1 s for
   * 40,000 objects).
   */
  change: 0.15,
  /** For a claim, its release and its replacement: every replica reads each. */
  writes: 8,
  /**
   * API server, etcd, scheduler and controller manager: a Pod, a record, and the PUT of a claim.
   */
  control: 14 + 2.9 + 3.3,
  /** Without any instance, and for each. */
  replicaMemory: 160 * 1024,
  instanceMemory: 4.86,
  /** Until it serves, for each instance. */
  start: 6_100 / 20_000,
  /** One finished sandbox in Redis. */
  history: 1,
} as const;

export interface Demand {
  readonly sandboxes: number;
  /** Average seconds. */
  readonly life: number;
  /** For each hundred claimed. */
  readonly idle: number;
  /** In each cluster. */
  readonly replicas: number;
  /** Per cluster. */
  readonly pods: number;
  /** In seconds. */
  readonly retention: number;
  /** Used share of a paid core. */
  readonly use: number;
  /** Per second, for a cluster's control plane. */
  readonly writes: number;
}

export interface Plan {
  readonly clusters: number;
  /** Per cluster. */
  readonly instances: number;
  readonly claims: number;
  readonly writes: number;
  /** For the busiest replica: cores and MiB; for all replicas: cores. */
  readonly replicaCores: number;
  readonly replicaMemory: number;
  readonly daemonCores: number;
  readonly controlCores: number;
  /** In seconds, until a replica serves. */
  readonly start: number;
  readonly redisMemory: number;
  /** Empty if all fits. */
  readonly misfits: readonly string[];
}

/** One process has one core for its event loop. */
const MOST_REPLICA_CORES = 1;
export const planOf = ({
  sandboxes,
  life,
  idle,
  replicas,
  pods,
  retention,
  use,
  writes: mostWrites,
}: Demand): Plan => {
  const all = sandboxes * (1 + idle / 100);
  const clusters = Math.max(1, Math.ceil(all / pods));
  const instances = all / clusters;
  const claims = sandboxes / clusters / life;
  const writes = claims * COSTS.writes;
  const mirrored = (writes * COSTS.change) / 1_000 / use;
  // shared by all replicas
  const led = (claims * (2 * COSTS.claim + COSTS.launchOrder)) / 1_000 / use;
  const replicaCores = led / replicas + mirrored;
  return {
    clusters,
    instances,
    claims,
    writes,
    replicaCores,
    daemonCores: led + replicas * mirrored,
    controlCores: (claims * COSTS.control) / 1_000 / use,
    replicaMemory: (COSTS.replicaMemory + instances * COSTS.instanceMemory) / 1024,
    start: (instances * COSTS.start) / 1_000,
    redisMemory: (claims * retention * COSTS.history) / 1024,
    misfits: [
      ...(replicaCores > MOST_REPLICA_CORES
        ? [`a replica needs ${replicaCores.toFixed(1)} cores, and its event loop has one`]
        : []),
      ...(writes > mostWrites
        ? [
            `${Math.round(writes)} writes a second are more than the ${mostWrites} that a cluster is taken to bear`,
          ]
        : []),
    ],
  };
};
