/** A volume that sandboxes of its namespace may mount. */
export interface Volume {
  readonly claimName: string;
  readonly displayName: string;
  /** A resource quantity; empty where it is not known. */
  readonly capacity: string;
  /** As Kubernetes names them: ReadWriteOnce, ReadOnlyMany, ReadWriteMany, ReadWriteOncePod. */
  readonly accessModes: readonly string[];
  readonly storageClass: string;
  readonly phase: 'Bound';
}

/**
 * The volumes of a namespace. Whose namespace it is, is for the caller to know: it is the boundary
 * between tenants.
 */
export interface Volumes {
  /**
   * Whether the deployment has volumes at all; where not, every list is empty and the gate
   * `volumes` is off.
   */
  readonly provided: boolean;
  /**
   * Lists those that are bound and can be mounted, by claimName, at most 1,000. Rejects with
   * `unavailable` where that can't be told now.
   */
  list(namespace: string): Promise<readonly Volume[]>;
}
