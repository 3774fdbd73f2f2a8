/**
 * Nothing was read or written: the store is unreachable, is overloaded, or refuses the daemon.
 * Every method of a contract may reject with this. Tenants may read `told`; the message may name
 * servers, users and rights.
 */
export abstract class NotDone extends Error {
  abstract readonly told: string;
  readonly retryAfterSeconds?: number;
}
