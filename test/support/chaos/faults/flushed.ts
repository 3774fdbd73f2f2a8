import type { Fault } from './fault.ts';

export interface Flushable {
  flushall(): Promise<unknown>;
}

export class Flushed implements Fault {
  readonly kind = 'flush';
  readonly victim = 'what Redis knows';
  readonly others = 'wait';
  readonly lastsMs = 0;
  readonly #redis: Flushable;

  constructor(redis: Flushable) {
    this.#redis = redis;
  }

  async begin(): Promise<void> {
    await this.#redis.flushall();
  }
  async end(): Promise<void> {}
}
