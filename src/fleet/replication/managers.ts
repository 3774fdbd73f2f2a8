import { forbidden, invalidArgument } from '../../model/refusals.ts';
import type { ManagersOperations, ManagersView } from '../../services/fleet-views.ts';
import type { Caller } from '../../model/tenant.ts';
import type { ApiKeyMirror } from '../../services/keys/api-keys.ts';
import type { ManagerAccess } from './manager-access.ts';

export interface ManagersDeps {
  readonly addresses: readonly string[];
  readonly access: Pick<ManagerAccess, 'cutOffAt' | 'set'>;
  readonly links: () => number;
  readonly apiKeys: Pick<ApiKeyMirror, 'find'>;
  /** Whether a manager's word alone says who asks. */
  readonly isLinked: (caller: Caller) => boolean;
}

/**
 * Shows the managers of this cluster (operation `GET /admin/managers`), cuts them off and lets them
 * in again (`PUT /admin/managers`). No manager says that of itself, or of another one.
 */
export const managers = ({
  addresses,
  access,
  links,
  apiKeys,
  isLinked,
}: ManagersDeps): ManagersOperations => {
  const getManagers = (): ManagersView => ({
    addresses,
    cutOffAt: access.cutOffAt,
    links: links(),
  });
  return {
    getManagers,
    setManagers: async (caller, { cutOff }) => {
      if (isLinked(caller) || apiKeys.find(caller.keyId)?.promotedBy !== undefined)
        throw forbidden('cutOff: takes an API key of this cluster itself, not one of a manager');
      if (addresses.length === 0)
        throw invalidArgument('cutOff', 'this cluster has no manager: fleet.managers is empty');
      await access.set(cutOff);
      return getManagers();
    },
  };
};
