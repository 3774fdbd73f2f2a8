import type { Fault } from './fault.ts';

/** Its files can be copied, and it can start on the copy. */
export interface Replaceable {
  keepCopy(): void;
  kill(): Promise<void>;
  restartFromCopy(): Promise<void>;
}

/** Replaces Redis by one that lacks the last writes, like a promoted replica. */
export class FailedOver implements Fault {
  readonly kind = 'Redis failover';
  readonly victim = 'Redis';
  readonly others = 'wait';
  readonly lastsMs: number;
  readonly #redis: Replaceable;
  readonly #lacksMs: number;

  /** `lacksMs`: the missing writes; `lastsMs`: time without Redis. */
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
