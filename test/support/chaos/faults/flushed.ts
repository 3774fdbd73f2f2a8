import type { Redis } from 'ioredis';
import type { Fault } from './fault.ts';

/** Redis loses everything, and has nothing to say about it. */
export class Flushed implements Fault {
  readonly kind = 'flush';
  readonly victim = 'redis';
  readonly others = 'wait';
  readonly lastsMs = 0;
  readonly #redis: Redis;

  constructor(redis: Redis) { this.#redis = redis; }

  async begin(): Promise<void> { await this.#redis.flushall(); }
  async end(): Promise<void> {}
}
