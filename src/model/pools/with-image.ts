import type { InstanceDefinition } from '../templates/template.ts';

export const withImage = (definition: InstanceDefinition, image: string): InstanceDefinition => {
  const [first, ...others] = definition.containers;
  if (!first) return definition;
  const { given = { command: first.argv }, ...rest } = first;
  const changed = image === 'host' ? { ...rest, image } : { ...rest, image, given };
  return { ...definition, containers: [changed, ...others] };
};
