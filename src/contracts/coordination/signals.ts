/** The records show revocations too, perhaps later, and also those that were not published. */
export interface Revocations {
  /**
   * Every replica, including this one, gets it as soon as possible; an outage drops it. Call it
   * once the record is gone. Never throws or waits.
   */
  publishRevocation(keyId: string): void;
  /**
   * Calls `missed` if some may be missing; the records then show them. Returns a function that
   * unsubscribes. Neither callback may throw.
   */
  subscribeRevocations(report: (keyId: string) => void, missed?: () => void): () => void;
}

/**
 * A claim found no idle instance: it waits or was refused, or a refused claimant has been served
 * since. `principal` is the claimant.
 */
export interface DemandSignal {
  readonly kind: 'waits' | 'refused' | 'served';
  readonly poolUid: string;
  readonly principal: string;
}

/** For the code that sizes pools. Later claims make up for a lost signal. */
export interface DemandSignals {
  /**
   * Every replica, including this one, gets it as soon as possible, in any order; an outage drops
   * it. Never throws or waits.
   */
  publishDemand(word: DemandSignal): void;
  /** Returns a function that unsubscribes. `report` must not throw. */
  subscribeDemand(report: (word: DemandSignal) => void): () => void;
}
