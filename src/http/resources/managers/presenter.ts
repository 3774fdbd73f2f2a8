import type { ManagersView } from '../../../services/fleet-views.ts';
import { timestampOf } from '../../corridor/common-schema.ts';
import type { ManagersWire } from './schema.ts';

export const presentManagers = ({ addresses, cutOffAt, links }: ManagersView): ManagersWire => ({
  addresses: [...addresses],
  cutOff: cutOffAt !== undefined,
  cutOffAt: timestampOf(cutOffAt),
  links,
});
