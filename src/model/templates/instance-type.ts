/** Quantities as in Kubernetes. */
export interface InstanceType {
  readonly name: string;
  readonly showName: string;
  readonly description: string;
  readonly baseResources: {
    readonly requests: Readonly<Record<string, string>>;
    readonly limits: Readonly<Record<string, string>>;
  };
  readonly maxMultiplier: number;
  readonly extensions: Readonly<Record<string, string>>;
}
