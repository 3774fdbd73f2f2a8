import type { Clock } from '../contracts/clock.ts';
import { RESERVATION_MS, type Quotas } from '../contracts/coordination.ts';
import type { QuotaResource } from '../model/quota.ts';
import { unavailable } from '../model/refusals.ts';
import type { Tenant } from '../model/tenant.ts';

export interface Reserved {
  readonly tenant: Tenant;
  readonly name: string;
  readonly resources: readonly QuotaResource[];
  /** When it was asked for. */
  readonly since: number;
}

/** To be asked right before a write that is allowed by a reservation. Refuses with `unavailable` where the reservation is old and counts no more. */
export const requireReserved = async ({ coordination, clock }: { readonly coordination: Pick<Quotas, 'stillReserved'>; readonly clock: Clock }, reserved: Reserved): Promise<void> => {
  if (clock.now() - reserved.since <= RESERVATION_MS) return;
  for (const resource of reserved.resources) {
    if (!await coordination.stillReserved(reserved.tenant, resource, reserved.name)) throw unavailable('what you use was counted anew meanwhile; try again');
  }
};
