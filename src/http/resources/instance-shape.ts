import { z } from 'zod';
import { formatMemory } from '../../model/quantities.ts';
import type { InstanceDefinition } from '../../model/templates/template.ts';

/** Absent from older daemons. */
export const InstanceShape = {
  containerImages: z
    .record(z.string(), z.string())
    .optional()
    .describe('Images by container name.'),
  network: z.enum(['none', 'host']).optional(),
  ports: z.record(z.string(), z.int()).optional().describe('Port numbers by name.'),
  ephemeralStorage: z
    .string()
    .optional()
    .describe(
      'Maximum that its containers may write to the disk of their node. Absent if it is not ' +
        'limited.',
    ),
};

export const presentInstanceShape = ({
  containers,
  network,
}: Pick<InstanceDefinition, 'containers' | 'network'>) => {
  const disk = containers.reduce(
    (sum, { ephemeralStorageBytes = 0 }) => sum + ephemeralStorageBytes,
    0,
  );
  return {
    containerImages: Object.fromEntries(containers.map(({ name, image }) => [name, image])),
    network,
    ports: Object.fromEntries(containers.flatMap(({ ports }) => Object.entries(ports))),
    ephemeralStorage: disk === 0 ? undefined : formatMemory(disk),
  };
};
