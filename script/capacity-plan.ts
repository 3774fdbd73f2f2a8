/** Computes the size of a fleet from costs that `script/bench` measured. */

/**
 * Measured costs, the slowest machine's; processor time in ms, memory in KiB, of Kubernetes unless
 * they say otherwise.
 */
const COSTS = {
  /**
   * Of the replica that answers: a sustained claim. Its release is taken for as much, which is not
   * measured.
   */
  claim: 1.03,
  /** Of the replica that leads the pool: an instance launched, seen to be ready and told of. */
  launchOrder: 2.7,
  /**
   * Of every replica: one object's change read and known, by the start with 20,000 instances (6.1 s
   * for 40,000 objects).
   */
  change: 0.15,
  /** Writes of a claim, its release and its replacement: every replica reads each. */
  writes: 8,
  /**
   * Of API server, etcd, scheduler and controller manager: a Pod from its creation to its end, an
   * instance's record, and the PUT of a claim.
   */
  control: 14 + 2.9 + 3.3,
  /** Of every replica: what it holds without any instance, and for each. */
  replicaMemory: 160 * 1024,
  instanceMemory: 4.86,
  /** Of a replica: from its start until it serves, for each instance. */
  start: 6_100 / 20_000,
  /** In Redis: one finished sandbox. */
  history: 1,
} as const;

export interface Demand {
  /** Claimed at one time, over all clusters. */
  readonly sandboxes: number;
  /** How long one is claimed on average (s). */
  readonly life: number;
  /** Idle for each hundred that are claimed. */
  readonly idle: number;
  /** Of the daemon, in each cluster. */
  readonly replicas: number;
  /** Pods that one cluster is to have. */
  readonly pods: number;
  /** For how long history is kept (s). */
  readonly retention: number;
  /** How much of a core that is paid for is used. */
  readonly use: number;
  /** A second, that a cluster's control plane bears. */
  readonly writes: number;
}

export interface Plan {
  readonly clusters: number;
  /** Of each cluster. */
  readonly instances: number;
  readonly claims: number;
  readonly writes: number;
  /** Of the replica that does most: cores and memory (MiB); of all Sandpool's replicas: cores. */
  readonly replicaCores: number;
  readonly replicaMemory: number;
  readonly daemonCores: number;
  readonly controlCores: number;
  /** Until a replica that is started serves (s). */
  readonly start: number;
  readonly redisMemory: number;
  /** Empty if everything fits. */
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
  // over all replicas, which share it out
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
