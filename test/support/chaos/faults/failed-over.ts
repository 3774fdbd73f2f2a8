import type { Fault } from './fault.ts';

/** A Redis whose files can be copied, and which can start on the copy. */
export interface Replaceable {
  keepCopy(): void;
  kill(): Promise<void>;
  restartFromCopy(): Promise<void>;
}

/** Redis is replaced by one that lacks what was written last, as a replica is that was promoted. */
export class FailedOver implements Fault {
  readonly kind = 'Redis failover';
  readonly victim = 'Redis';
  readonly others = 'wait';
  readonly lastsMs: number;
  readonly #redis: Replaceable;
  readonly #lacksMs: number;

  /** `lacksMs`: how much of what was written last it lacks; `lastsMs`: how long there is none. */
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
