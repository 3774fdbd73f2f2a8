/** Types of the used part of redlock 4.2, which ships none. */
declare module 'redlock' {
  export interface Lock {
    /** The key's value while the lock is held. */
    readonly value: string;
    /** Rejects if the lock is no longer held. */
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
    /** Value for the next lock. */
    protected _random(): string;
  }
}
