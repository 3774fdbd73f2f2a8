/** Names one cluster of a fleet, where a command shows all. */
export const CLUSTER_OPTION = [
  '--cluster <clusterID>',
  'of this cluster of a fleet; else of all that the manager knows',
] as const;

export interface ClusterOption {
  readonly cluster?: string;
}
