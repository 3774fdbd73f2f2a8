import type { InstanceType } from '../model/templates/instance-type.ts';

/** The sizes that pools may name. They are read once, at the start. */
export interface InstanceTypes {
  /**
   * False of the provider that has none: then the gate `instanceType` is off, and naming one is
   * refused with FEATURE_DISABLED.
   */
  readonly provided: boolean;
  get(name: string): InstanceType | undefined;
  /** In the order that they were given in. */
  list(): readonly InstanceType[];
}
