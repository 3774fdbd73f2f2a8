import { FairSlots } from '../../lib/fair-slots.ts';
import { tooMuchWaits } from '../../model/limit-refusals.ts';

export interface TenantLineTerms {
  /** Under way at one time; one of a tenant. */
  readonly most: number;
  /** That wait: of one tenant, and of all. */
  readonly mostWaitingOfTenant: number;
  readonly mostWaiting: number;
  /**
   * For how long the answer to what is refused is held back, so that refusing leaves time for work.
   * In ms.
   */
  readonly holdMs: number;
}

/** Holds what takes long until its turn comes: tenant by tenant, one of each in turn. */
export class TenantLine {
  readonly #slots: FairSlots;
  readonly #holdMs: number;
  waiting = 0;
  refused = 0;

  constructor({ most, holdMs, ...terms }: TenantLineTerms) {
    this.#slots = new FairSlots({ ...terms, most: () => most, mostOfTenant: () => 1 });
    this.#holdMs = holdMs;
  }

  /**
   * Resolves with what ends the turn, once it has come. Rejects with RATE_LIMITED where too much
   * waits already.
   */
  turn(tenant: string): Promise<() => void> {
    this.waiting += 1;
    return new Promise((resolve, reject) => {
      const taken = this.#slots.request(tenant, (release) => {
        this.waiting -= 1;
        resolve(release);
      });
      if (taken) return;
      this.waiting -= 1;
      this.refused += 1;
      setTimeout(() => {
        reject(tooMuchWaits());
      }, this.#holdMs).unref();
    });
  }
}
