/**
 * A size that pools may be made in, times a multiplier. Quantities by resource, as Kubernetes
 * writes them: `cpu`, `memory`.
 */
export interface InstanceType {
  readonly name: string;
  readonly showName: string;
  readonly description: string;
  readonly baseResources: {
    readonly requests: Readonly<Record<string, string>>;
    readonly limits: Readonly<Record<string, string>>;
  };
  /** The largest multiplier that may be asked for, at least 1. */
  readonly maxMultiplier: number;
  /** Data, never interpreted. */
  readonly extensions: Readonly<Record<string, string>>;
}
