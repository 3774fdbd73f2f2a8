import { NoPlace } from '../../contracts/sandbox-driver.ts';
import { FairSlots } from '../../lib/fair-slots.ts';
import { tenantKey, type Tenant } from '../../model/tenant.ts';

/**
 * Records of new instances that are written at once: they share a commit, and are soon answered.
 */
const MOST_AT_ONCE = 16;
/** As many as may wait for the spawner. */
const MOST_WAITING = 4_096;
const MOST_WAITING_OF_TENANT = 1_024;

/**
 * Limits how many new instances are written at one time, tenants in turn: all that pools ask for at
 * once would keep the event loop busy for long, and be before whatever another tenant's pool asks
 * for.
 */
export class LaunchTurns {
  readonly #slots = new FairSlots({
    most: () => MOST_AT_ONCE,
    mostOfTenant: (most) => most,
    mostWaiting: MOST_WAITING,
    mostWaitingOfTenant: MOST_WAITING_OF_TENANT,
  });

  /** Resolves with what gives the turn back. Rejects with NoPlace where too many wait. */
  take(owner: Tenant): Promise<() => void> {
    return new Promise((resolve, reject) => {
      if (!this.#slots.request(tenantKey(owner), resolve))
        reject(new NoPlace('too many sandboxes wait to be started on this machine'));
    });
  }
}
