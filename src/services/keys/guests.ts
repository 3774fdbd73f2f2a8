import type { Supervisor } from '../../actors/sandbox/supervisor.ts';
import { invalidToken } from '../../model/refusals.ts';
import { tenantKey } from '../../model/tenant.ts';
import type { KeyOperations } from './key-operations.ts';

/**
 * Callers of a port that is open to everyone share one allowance and the tenant's connections. A
 * sandbox on the host's network does not get guests, because the host has ports of others.
 */
export const guests = ({
  supervisor,
}: {
  readonly supervisor: Pick<Supervisor, 'sandbox'>;
}): Pick<KeyOperations, 'guestOf'> => ({
  guestOf: (sandboxId) => {
    const found = supervisor.sandbox(sandboxId);
    const record = found?.status === 'Running' ? found.context.record : undefined;
    if (record?.onHost) throw invalidToken();
    const owner = record?.claim?.owner;
    return owner && { ...owner, role: 'user', keyId: `guest of ${tenantKey(owner)}` };
  },
});
