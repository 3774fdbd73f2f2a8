/**
 * Which API keys were revoked a moment ago. The records show it too, perhaps later; what is not
 * told here is seen there.
 */
export interface Revocations {
  /**
   * Tells every replica, this one too, as soon as may be; nobody where that can't be. Called once
   * the record is gone. Never throws, never waits.
   */
  publishRevocation(keyId: string): void;
  /**
   * Reports what is told from now on. Calls `missed` where some may not have been reported: then
   * the records say what was revoked. Returns how to end it. Neither must throw.
   */
  subscribeRevocations(report: (keyId: string) => void, missed?: () => void): () => void;
}

/**
 * Describes what became of a claim for which nothing was idle: it waits, or was refused; or who was
 * refused before has got one since. `principal`: who claims.
 */
export interface DemandSignal {
  readonly kind: 'waits' | 'refused' | 'served';
  readonly poolUid: string;
  readonly principal: string;
}

/**
 * Tells what claims lack to whoever sizes pools. A word that is lost is made up for by the claims
 * that come after it.
 */
export interface DemandSignals {
  /**
   * Tells every replica, this one too, as soon as may be and in no promised order; nobody where
   * that can't be. Never throws, never waits.
   */
  publishDemand(word: DemandSignal): void;
  /** Reports what is told from now on. Answers the way to end it. `report` must not throw. */
  subscribeDemand(report: (word: DemandSignal) => void): () => void;
}
