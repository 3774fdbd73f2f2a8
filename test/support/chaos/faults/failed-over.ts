import type { Fault } from './fault.ts';

export interface Replaceable {
  keepCopy(): void;
  kill(): Promise<void>;
  restartFromCopy(): Promise<void>;
}

/** Redis lacks the last writes, like a promoted replica. */
export class FailedOver implements Fault {
  readonly kind = 'Redis failover';
  readonly victim = 'Redis';
  readonly others = 'wait';
  readonly lastsMs: number;
  readonly #redis: Replaceable;
  readonly #lacksMs: number;

  /** `lacksMs` of writes are lost; Redis is away for `lastsMs`. */
  constructor(
    redis: Replaceable,
    { lacksMs, lastsMs }: { readonly lacksMs: number; readonly lastsMs: number },
  ) {
    [this.#redis, this.#lacksMs, this.lastsMs] = [redis, lacksMs, lastsMs];
  }

  async begin(): Promise<void> {
    this.#redis.keepCopy();
    await new Promise((resolve) => {
      setTimeout(resolve, this.#lacksMs);
    });
    await this.#redis.kill();
  }

  async end(): Promise<void> {
    await this.#redis.restartFromCopy();
  }
}
