/** Names one cluster of a fleet, where a command shows all. */
export const CLUSTER_OPTION = [
  '--cluster <clusterID>',
  'of this cluster of a fleet; else of all that the manager knows',
] as const;

/** Names one cluster of a fleet, where a command shows the one that is asked. */
export const OF_CLUSTER_OPTION = [
  '--cluster <clusterID>',
  'of this cluster of a fleet; else of the one that is asked',
] as const;

export interface ClusterOption {
  readonly cluster?: string;
}
