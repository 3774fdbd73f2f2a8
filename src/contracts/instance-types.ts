import type { InstanceType } from '../model/templates/instance-type.ts';

export interface InstanceTypes {
  /**
   * If false, the gate `instanceType` is off, and naming a type is refused with FEATURE_DISABLED.
   */
  readonly provided: boolean;
  get(name: string): InstanceType | undefined;
  list(): readonly InstanceType[];
}
