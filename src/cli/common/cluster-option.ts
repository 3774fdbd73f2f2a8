/** Selects one cluster of a fleet. By default, all clusters. */
export const CLUSTER_OPTION = [
  '--cluster <clusterID>',
  'of this cluster of a fleet; else of all that the manager knows',
] as const;

/** Selects one cluster of a fleet. By default, the answering cluster. */
export const OF_CLUSTER_OPTION = [
  '--cluster <clusterID>',
  'of this cluster of a fleet; else of the one that is asked',
] as const;

export interface ClusterOption {
  readonly cluster?: string;
}
