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

/** The namespace is the boundary between tenants, so the caller must know its owner. */
export interface Volumes {
  /** If false, every list is empty and the gate `volumes` is off. */
  readonly provided: boolean;
  /**
   * Bound and mountable, sorted by claimName, at most 1,000. Rejects with `unavailable` if the list
   * can't be read now.
   */
  list(namespace: string): Promise<readonly Volume[]>;
}
