import type { FaultProxy } from '../../harness/fault-proxy.ts';
import type { Fault } from './fault.ts';

export interface Behind {
  /** Which replica. */
  readonly n: number;
  /** As the path of the watch has it. */
  readonly plural: string;
  readonly behindMs: number;
  readonly lastsMs: number;
}

/**
 * One watch of one replica tells everything late, while its other watches and its writes are on
 * time.
 */
export class WatchBehind implements Fault {
  readonly kind: string;
  readonly victim: string;
  readonly others = 'wait';
  readonly hinders: number;
  readonly lastsMs: number;
  readonly #proxy: FaultProxy;
  readonly #behind: Behind;

  /** The proxy must see what passes: one with TLS of its own. */
  constructor(proxy: FaultProxy, behind: Behind) {
    [this.#proxy, this.#behind, this.lastsMs, this.hinders] = [
      proxy,
      behind,
      behind.lastsMs,
      behind.n,
    ];
    this.kind = `watch of ${behind.plural} behind`;
    this.victim = `replica ${behind.n} to the API server`;
  }

  async begin(): Promise<void> {
    const { plural, behindMs } = this.#behind;
    this.#proxy.lag = { of: new RegExp(`/${plural}\\?(.*&)?watch=`), ms: behindMs };
  }

  async end(): Promise<void> {
    this.#proxy.lag = undefined;
  }
}
