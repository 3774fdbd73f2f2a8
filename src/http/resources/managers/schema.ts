import { z } from 'zod';
import { maybe, timestamp } from '../../corridor/common-schema.ts';

const cutOff = z.boolean();

export const SetManagersBody = z.object({
  cutOff: cutOff.describe('`true` cuts them off; `false` lets them in again.'),
});

export const Managers = z
  .object({
    addresses: z.array(z.string()).describe('As `fleet.managers` has them.'),
    cutOff: cutOff.describe('No replica of this cluster links to them.'),
    cutOffAt: maybe(timestamp).describe('Since when; left out where they are not.'),
    links: z.int().describe('How many there are of the replica that answers.'),
  })
  .meta({ id: 'Managers' });

export type ManagersWire = z.infer<typeof Managers>;
