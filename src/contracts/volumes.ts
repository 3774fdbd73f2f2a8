/** A volume that sandboxes of its namespace may mount. */
export interface Volume {
  readonly claimName: string;
  readonly displayName: string;
  /** A resource quantity; empty if unknown. */
  readonly capacity: string;
  /** Kubernetes names: ReadWriteOnce, ReadOnlyMany, ReadWriteMany, ReadWriteOncePod. */
  readonly accessModes: readonly string[];
  readonly storageClass: string;
  readonly phase: 'Bound';
}

/**
 * Volumes by namespace. The namespace is the boundary between tenants, so the caller must know its
 * owner.
 */
export interface Volumes {
  /**
   * Whether the deployment has volumes. If not, every list is empty and the gate `volumes` is off.
   */
  readonly provided: boolean;
  /**
   * Lists bound, mountable volumes, sorted by claimName, at most 1,000. Rejects with `unavailable`
   * if the list can't be read now.
   */
  list(namespace: string): Promise<readonly Volume[]>;
}
