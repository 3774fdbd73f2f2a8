import type { Role } from '../../model/tenant.ts';

/** The most keys of a manager that count on all its clusters. */
export const MOST_PROMOTED = 1_000;

/**
 * A promoted key as a manager tells its workers of it: never its secret, nor the manager's pepper
 * or anything that was made with it. Times in ms, by the manager's clock.
 */
export interface PromotedKey {
  readonly keyId: string;
  readonly shortName: string;
  readonly team: string;
  readonly user: string;
  readonly role: Role;
  readonly description: string;
  /** Hash of the secret, of 256 random bits, hex. */
  readonly verifier: string;
  readonly gated?: true | undefined;
  readonly makers?: readonly string[] | undefined;
  readonly issuedAt: number;
  readonly expiresAt: number;
}

/** Tells the links of a manager of its promoted keys. */
export interface PromotedKeySource {
  /** Every promoted key that is good now; no older than the call. Rejects where it is not known. */
  list(): Promise<readonly PromotedKey[]>;
  /** Undefined where the key is not promoted, or not good any more. */
  find(keyId: string): PromotedKey | undefined;
  /** Calls `changed` for each key of which `find` says something else from then on. */
  follow(changed: (keyId: string) => void): () => void;
}

/** Says what a manager has to tell of its promoted keys. */
export interface PromotedChange {
  readonly keys: readonly PromotedKey[];
  /** Ids of keys that are not promoted, or not good any more. */
  readonly gone: readonly string[];
  /** The manager's time. */
  readonly now: number;
}

/** Keeps copies of promoted keys at a worker. */
export interface PromotedKeyCopies {
  /**
   * A manager proved to be at one of the addresses that the worker dials. Once each of them is
   * known to lead to one, copies of any other manager end. `manager`: fingerprint of its key.
   */
  leadsTo(address: string, manager: string): void;
  /** Begins with a link whose manager proved to be it. `manager`: fingerprint of its key. */
  begin(manager: string): PromotedKeyVisit;
}

/** Takes in what one link tells of promoted keys. */
export interface PromotedKeyVisit {
  /** Has it hold here, also for requests under way; durable when it resolves. */
  take(change: PromotedChange): Promise<void>;
  /** Ends all copies besides these, and takes them for up to date from now on. */
  caughtUp(keyIds: ReadonlySet<string>): Promise<void>;
  /** The manager does not know this cluster any more: none of its keys is good here. */
  left(): Promise<void>;
  /** The link is over. */
  end(): void;
}
