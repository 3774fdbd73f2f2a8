import { tooManyWaiting, unavailable } from '../../model/refusals.ts';
import { tenantKey, type Tenant } from '../../model/tenant.ts';
import { Seats } from '../../lib/seats.ts';

/** Claims that wait in this process, of one tenant and in all. */
export const MOST_WAITING_OF_TENANT = 512;
export const MOST_WAITING = 2_048;

/** Who may wait here. */
export class WaitingSeats {
  readonly #ofTenant = new Seats(MOST_WAITING_OF_TENANT);
  #taken = 0;

  /** Refuses with TOO_MANY_WAITING, or UNAVAILABLE where all are taken. */
  take(tenant: Tenant): void {
    if (this.#taken >= MOST_WAITING)
      throw unavailable('too many claims wait here; try again shortly');
    if (!this.#ofTenant.take(tenantKey(tenant)))
      throw tooManyWaiting('for your pools', MOST_WAITING_OF_TENANT);
    this.#taken += 1;
  }

  leave(tenant: Tenant): void {
    this.#ofTenant.leave(tenantKey(tenant));
    this.#taken -= 1;
  }
}
