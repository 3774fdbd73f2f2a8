/**
 * Recent revocations of API keys. The records show them too, perhaps later, and also those that
 * were not published.
 */
export interface Revocations {
  /**
   * Publishes the revocation to every replica, including this replica, as soon as possible; drops
   * it during an outage. Called once the record is gone. Never throws or waits.
   */
  publishRevocation(keyId: string): void;
  /**
   * Reports further revocations. Calls `missed` if some may be missing; the records then show them.
   * Returns a function that unsubscribes. Neither callback may throw.
   */
  subscribeRevocations(report: (keyId: string) => void, missed?: () => void): () => void;
}

/**
 * State of a claim that found no idle instance: it waits or was refused, or a refused claimant has
 * been served since. `principal` is the claimant.
 */
export interface DemandSignal {
  readonly kind: 'waits' | 'refused' | 'served';
  readonly poolUid: string;
  readonly principal: string;
}

/**
 * Reports unmet demand of claims to the code that sizes pools. Later claims make up for a lost
 * signal.
 */
export interface DemandSignals {
  /**
   * Publishes to every replica, including this replica, as soon as possible and in any order; drops
   * the signal during an outage. Never throws or waits.
   */
  publishDemand(word: DemandSignal): void;
  /** Reports further signals. Returns a function that unsubscribes. `report` must not throw. */
  subscribeDemand(report: (word: DemandSignal) => void): () => void;
}
