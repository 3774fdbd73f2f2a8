/**
 * A size for pools, times a multiplier. Quantities by resource, as in Kubernetes: `cpu`, `memory`.
 */
export interface InstanceType {
  readonly name: string;
  readonly showName: string;
  readonly description: string;
  readonly baseResources: {
    readonly requests: Readonly<Record<string, string>>;
    readonly limits: Readonly<Record<string, string>>;
  };
  /** Largest permitted multiplier, at least 1. */
  readonly maxMultiplier: number;
  /** Opaque data. */
  readonly extensions: Readonly<Record<string, string>>;
}
