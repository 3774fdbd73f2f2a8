/** By default, all clusters. */
export const CLUSTER_OPTION = [
  '--cluster <clusterID>',
  'only of this cluster of a fleet; by default of all clusters',
] as const;

/** By default, the answering cluster. */
export const OF_CLUSTER_OPTION = [
  '--cluster <clusterID>',
  'cluster of a fleet; by default the cluster that answers',
] as const;

export interface ClusterOption {
  readonly cluster?: string;
}
