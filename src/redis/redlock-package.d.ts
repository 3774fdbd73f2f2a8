/** What is used of redlock 4.2, which ships no types. */
declare module 'redlock' {
  export interface Lock {
    /** By the wall clock; `extend` refuses past it. */
    expiration: number;
    extend(ttlMs: number): PromiseLike<Lock>;
    /** Rejects where it was no longer held. */
    unlock(): PromiseLike<void>;
  }

  interface Client {
    evalsha(...args: never[]): unknown;
    eval(...args: never[]): unknown;
  }

  export default class Redlock {
    constructor(clients: readonly Client[], options: { readonly driftFactor?: number; readonly retryCount?: number });
    lock(resource: string, ttlMs: number): PromiseLike<Lock>;
    on(event: 'clientError', listener: (error: unknown) => void): this;
  }
}
