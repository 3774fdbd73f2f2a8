import type { Fault } from './fault.ts';

export interface SetBackStore {
  keepCopy(): Promise<void>;
  /** Nobody can write at that time. */
  restore(): Promise<void>;
}

export const ETCD_RESTORED = 'etcd restored';

export class SetBack implements Fault {
  readonly kind = ETCD_RESTORED;
  readonly victim = 'etcd';
  readonly also = ['API server'];
  readonly isAlone = true;
  readonly others = 'wait';
  readonly lastsMs: number;
  readonly #store: SetBackStore;

  /** Writes of `lastsMs` are lost. */
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
