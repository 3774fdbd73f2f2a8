import { Refusal } from '../../model/refusals.ts';
import type { Caller } from '../../model/tenant.ts';

/** Refuses admin-only fields from a non-admin, whatever their value. */
export const refuseAdminFields = <T extends object>(
  caller: Caller,
  given: T,
  names: readonly (keyof T & string)[],
): void => {
  if (caller.role === 'admin') return;
  const field = names.find((name) => given[name] !== undefined);
  if (field !== undefined)
    throw new Refusal('ADMIN_REQUIRED', `${field} needs a key with the admin role`, {
      detail: { field },
    });
};
