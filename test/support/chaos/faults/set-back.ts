import type { Fault } from './fault.ts';

/** The store, and what has to be told of what happens to it. */
export interface SetBackStore {
  /** Keeps a copy of what the store holds now. */
  keepCopy(): Promise<void>;
  /** Ends it, once nobody can write, and starts it on the copy. */
  restore(): Promise<void>;
}

export const ETCD_RESTORED = 'etcd restored';

/** etcd is restored from an older copy of itself while the replicas run on. */
export class SetBack implements Fault {
  readonly kind = ETCD_RESTORED;
  readonly victim = 'etcd';
  readonly also = ['API server'];
  readonly isAlone = true;
  readonly others = 'wait';
  readonly lastsMs: number;
  readonly #store: SetBackStore;

  /** What is written for `lastsMs` is lost. */
  constructor(store: SetBackStore, lastsMs: number) {
    [this.#store, this.lastsMs] = [store, lastsMs];
  }

  async begin(): Promise<void> {
    await this.#store.keepCopy();
  }
  async end(): Promise<void> {
    await this.#store.restore();
  }
}
