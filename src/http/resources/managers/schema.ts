import { z } from 'zod';
import { maybe, timestamp } from '../../corridor/common-schema.ts';

const cutOff = z.boolean();

export const SetManagersBody = z.object({
  cutOff: cutOff.describe('`true` cuts all managers off; `false` admits them again.'),
});

export const Managers = z
  .object({
    addresses: z.array(z.string()).describe('Addresses in `fleet.managers`.'),
    cutOff: cutOff.describe('Whether no replica of this cluster links to its managers.'),
    cutOffAt: maybe(timestamp).describe(
      'When the managers were cut off. Absent if they are not cut off.',
    ),
    links: z.int().describe('Number of links of the replica that answers.'),
  })
  .meta({ id: 'Managers' });

export type ManagersWire = z.infer<typeof Managers>;
