import { formatDuration } from '../../../model/durations.ts';
import { formatMemory } from '../../../model/quantities.ts';
import type { ContainerDefinition, InstanceDefinition } from '../../../model/templates/template.ts';
import type { EmbeddedTemplateWire } from './schema.ts';

/** Shows what instances are started from, in the words of a template. */
export const presentEmbeddedTemplate = (definition: InstanceDefinition): EmbeddedTemplateWire => {
  const endpoints = Object.entries(definition.endpoints ?? {});
  return {
    containers: definition.containers.map(presentContainer),
    network: definition.network,
    endpoints:
      endpoints.length === 0
        ? undefined
        : endpoints.map(([name, { port, scheme }]) => ({ name, port, scheme })),
    startupTimeout: formatDuration(definition.startupTimeoutMs),
    idleTimeout: formatDuration(definition.idleTimeoutMs),
    maxLifetime: formatDuration(definition.maxLifetimeMs),
  };
};

const presentContainer = (
  container: ContainerDefinition,
): EmbeddedTemplateWire['containers'][number] => ({
  name: container.name,
  image: container.image,
  command: [...container.argv],
  workingDir: container.workingDir,
  env: Object.keys(container.env).map((name) => ({ name })),
  resources: {
    limits: sizeOf(container),
    requests: container.requests ? sizeOf(container.requests) : undefined,
  },
});

const sizeOf = ({
  cpuCores,
  memoryBytes,
}: Pick<ContainerDefinition, 'cpuCores' | 'memoryBytes'>): { cpu: string; memory: string } => ({
  cpu: `${Math.round(cpuCores * 1_000)}m`,
  memory: formatMemory(memoryBytes),
});
