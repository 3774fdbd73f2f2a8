/**
 * Nothing was read and nothing written: whoever has the truth is out of reach, has too much to do,
 * or refuses the daemon. Every method of a contract may reject with this. `told` is what a tenant
 * may read of it: the message may name servers, users and rights.
 */
export abstract class NotDone extends Error {
  abstract readonly told: string;
  /** Seconds after which it may be tried again, where that is known. */
  readonly retryAfterSeconds?: number;
}
