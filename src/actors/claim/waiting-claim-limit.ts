import { tooManyWaiting } from '../../model/limit-refusals.ts';
import { unavailable } from '../../model/refusals.ts';
import { tenantKey, type Tenant } from '../../model/tenant.ts';
import { Permits } from '../../lib/permits.ts';

export const MOST_WAITING_OF_TENANT = 512;
export const MOST_WAITING = 2_048;

export class WaitingClaimLimit {
  readonly #permits = new Permits({ all: MOST_WAITING, tenant: MOST_WAITING_OF_TENANT });

  /** Refuses with TOO_MANY_WAITING, or UNAVAILABLE if all are taken. */
  acquire(tenant: Tenant): () => void {
    return this.#permits.take({ all: '', tenant: tenantKey(tenant) }, (kind, most) =>
      kind === 'all'
        ? unavailable('too many claims are waiting; try again shortly')
        : tooManyWaiting('for your pools', most),
    );
  }
}
