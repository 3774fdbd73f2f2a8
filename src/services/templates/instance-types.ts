import type { InstanceTypes } from '../../contracts/instance-types.ts';
import type { InstanceType } from '../../model/templates/instance-type.ts';

export const instanceTypes = (given: readonly InstanceType[] | undefined): InstanceTypes => {
  const byName = new Map((given ?? []).map((type) => [type.name, type]));
  return {
    provided: given !== undefined,
    get: (name) => byName.get(name),
    list: () => [...byName.values()],
  };
};
