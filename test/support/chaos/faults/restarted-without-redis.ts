import type { Fault } from './fault.ts';
import type { Mortal } from './killed.ts';

export interface WithoutRedis {
  readonly n: number;
  readonly replica: Mortal;
  readonly redis: Mortal;
  /** All leases end after 4 s. */
  readonly lastsMs: number;
}

/** The replica starts without a lease, and Redis knows old ones. */
export class RestartedWithoutRedis implements Fault {
  readonly kind = 'restart without Redis';
  readonly victim: string;
  readonly also = ['Redis'];
  readonly others = 'wait';
  readonly hinders: number;
  readonly lastsMs: number;
  readonly #parts: WithoutRedis;
  #started: Promise<unknown> = Promise.resolve();

  constructor(parts: WithoutRedis) {
    this.#parts = parts;
    this.victim = `replica ${parts.n}`;
    this.hinders = parts.n;
    this.lastsMs = parts.lastsMs;
  }

  async begin(): Promise<void> {
    const { replica, redis } = this.#parts;
    await redis.kill();
    await replica.kill();
    this.#started = replica.restart();
    this.#started.catch(() => undefined); // `end` tells
  }

  async end(): Promise<void> {
    await this.#parts.redis.restart();
    await this.#started;
  }
}
