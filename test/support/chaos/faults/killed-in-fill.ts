import type { Fault } from './fault.ts';
import type { Mortal } from './killed.ts';

export interface Fill {
  /** Resolves once it is acknowledged. */
  resize(): Promise<void>;
  leader(): Promise<number>;
  readonly replicas: readonly Mortal[];
  readonly afterMs: number;
  readonly lastsMs: number;
}

export class KilledInFill implements Fault {
  readonly kind = 'kill in a fill';
  readonly victim = 'the leader of the pool that is filled';
  readonly also: readonly string[];
  readonly others = 'lead';
  readonly lastsMs: number;
  hinders = 0;
  readonly #fill: Fill;

  constructor(fill: Fill) {
    [this.#fill, this.lastsMs] = [fill, fill.lastsMs];
    this.also = fill.replicas.map((_, n) => `replica ${n}`);
  }

  async begin(): Promise<void> {
    const { resize, leader, replicas, afterMs } = this.#fill;
    this.hinders = await leader();
    await resize();
    await new Promise((resolve) => {
      setTimeout(resolve, afterMs);
    });
    await replicas[this.hinders]?.kill();
  }

  async end(): Promise<void> {
    await this.#fill.replicas[this.hinders]?.restart();
  }
}
