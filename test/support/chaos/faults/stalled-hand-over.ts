import type { Dice } from '../../builders/hostile-values.ts';
import type { Fault } from './fault.ts';

export interface HandOver {
  readonly n: number;
  /** `leave` resolves once it has ended by itself, `join` once it is ready. */
  readonly replica: { leave(): Promise<unknown>; join(): Promise<unknown> };
  readonly redis: { signal(name: 'SIGSTOP' | 'SIGCONT'): void };
  readonly dice: Dice;
}

const STALL_MS = 1_000;
const STALL_MORE_MS = 2_000;
const UNTIL_STALL_MS = 1_500;

/** Stalls Redis while a replica hands over its shards, and while it takes some. */
export class StalledHandOver implements Fault {
  readonly kind = 'stalled hand-over';
  readonly victim: string;
  readonly also = ['Redis'];
  readonly others = 'wait';
  readonly hinders: number;
  readonly lastsMs = 0;
  readonly #parts: HandOver;

  constructor(parts: HandOver) {
    this.#parts = parts;
    this.victim = `replica ${parts.n}`;
    this.hinders = parts.n;
  }

  async begin(): Promise<void> {
    await this.#stalled(() => this.#parts.replica.leave());
  }
  async end(): Promise<void> {
    await this.#stalled(() => this.#parts.replica.join());
  }

  async #stalled(handOver: () => Promise<unknown>): Promise<void> {
    const { redis, dice } = this.#parts;
    const [untilMs, forMs] = [dice.below(UNTIL_STALL_MS), STALL_MS + dice.below(STALL_MORE_MS)];
    const stall = async (): Promise<void> => {
      await pause(untilMs);
      redis.signal('SIGSTOP');
      await pause(forMs);
      redis.signal('SIGCONT');
    };
    await Promise.all([handOver(), stall()]);
  }
}

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
