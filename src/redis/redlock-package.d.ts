/** The part of redlock 4.2 that is used, which ships no types. */
declare module 'redlock' {
  export interface Lock {
    /** The value that the key holds while the lock does. */
    readonly value: string;
    /** Rejects where it was no longer held. */
    unlock(): PromiseLike<void>;
  }

  interface Client {
    evalsha(...args: never[]): unknown;
    eval(...args: never[]): unknown;
  }

  export default class Redlock {
    constructor(
      clients: readonly Client[],
      options: { readonly driftFactor?: number; readonly retryCount?: number },
    );
    lock(resource: string, ttlMs: number): PromiseLike<Lock>;
    on(event: 'clientError', listener: (error: unknown) => void): this;
    /** The value of the next lock. */
    protected _random(): string;
  }
}
