import type { Lease, LeaseListener, Leases } from '../../../src/contracts/coordination/leases.ts';

/** A test gives and takes them. */
export class GivenLeases implements Leases {
  readonly givenUp: number[] = [];
  readonly #replicas: readonly string[];
  readonly #leases = new Map<number, { epoch: number; held: boolean }>();
  #listener: LeaseListener | undefined;
  left = false;

  constructor(replicas: readonly string[] = ['one']) {
    this.#replicas = replicas;
  }

  give(shard: number, epoch: number): void {
    this.#leases.set(shard, { epoch, held: true });
    this.#listener?.gained(shard);
  }

  take(shard: number, because: 'gone' | 'wanted-elsewhere'): void {
    const lease = this.#leases.get(shard);
    if (lease && because === 'gone') lease.held = false;
    this.#listener?.lost(shard, because);
  }

  lease(shard: number): Lease | undefined {
    const lease = this.#leases.get(shard);
    return lease && { epoch: lease.epoch, held: () => lease.held };
  }

  follow(listener: LeaseListener): () => void {
    this.#listener = listener;
    for (const shard of this.#leases.keys()) listener.gained(shard);
    return () => {
      this.#listener = undefined;
    };
  }

  async giveUp(shard: number): Promise<void> {
    this.givenUp.push(shard);
  }
  leave(): void {
    this.left = true;
  }
  join(): void {
    this.left = false;
  }
  replicas(): readonly string[] {
    return this.#replicas;
  }
  holders(): ReadonlyMap<number, string> {
    return new Map();
  }
}
