import { tooManyWaiting } from '../../model/limit-refusals.ts';
import { unavailable } from '../../model/refusals.ts';
import { tenantKey, type Tenant } from '../../model/tenant.ts';
import { KeyedSemaphore } from '../../lib/keyed-semaphore.ts';

/** Claims that wait in this process, of one tenant and in all. */
export const MOST_WAITING_OF_TENANT = 512;
export const MOST_WAITING = 2_048;

/** Who may wait here. */
export class WaitingClaimLimit {
  readonly #ofTenant = new KeyedSemaphore(MOST_WAITING_OF_TENANT);
  #taken = 0;

  /** Refuses with TOO_MANY_WAITING, or UNAVAILABLE where all are taken. */
  acquire(tenant: Tenant): void {
    if (this.#taken >= MOST_WAITING)
      throw unavailable('too many claims wait here; try again shortly');
    if (!this.#ofTenant.acquire(tenantKey(tenant)))
      throw tooManyWaiting('for your pools', MOST_WAITING_OF_TENANT);
    this.#taken += 1;
  }

  release(tenant: Tenant): void {
    this.#ofTenant.release(tenantKey(tenant));
    this.#taken -= 1;
  }
}
