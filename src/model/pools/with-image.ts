import type { InstanceDefinition } from '../templates/template.ts';

/**
 * Returns what an instance is started from with another image in the place of its first
 * container's; all else stays, its command too.
 */
export const withImage = (definition: InstanceDefinition, image: string): InstanceDefinition => {
  const [first, ...others] = definition.containers;
  if (!first) return definition;
  const { given = { command: first.argv }, ...rest } = first;
  const changed = image === 'host' ? { ...rest, image } : { ...rest, image, given };
  return { ...definition, containers: [changed, ...others] };
};
