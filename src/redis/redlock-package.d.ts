/** For redlock 4.2, which has no types. */
declare module 'redlock' {
  export interface Lock {
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
    protected _random(): string;
  }
}
