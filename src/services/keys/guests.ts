import type { Supervisor } from '../../actors/sandbox/supervisor.ts';
import { invalidToken } from '../../model/refusals.ts';
import { tenantKey } from '../../model/tenant.ts';
import type { KeyOperations } from './key-operations.ts';

/**
 * Says as whom a request comes to a port that is open to everyone (ports of the compatible API):
 * guests of one tenant share one allowance, and that tenant's connections. On the host's network
 * are ports of others too: there nobody is a guest.
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
