import type { FaultProxy } from '../../harness/fault-proxy.ts';
import type { Fault } from './fault.ts';

export interface Behind {
  readonly n: number;
  /** In the watch's path. */
  readonly plural: string;
  readonly behindMs: number;
  readonly lastsMs: number;
}

export class WatchBehind implements Fault {
  readonly kind: string;
  readonly victim: string;
  readonly others = 'wait';
  readonly hinders: number;
  readonly lastsMs: number;
  readonly #proxy: FaultProxy;
  readonly #behind: Behind;

  /** Needs a proxy with its own TLS, which sees what passes. */
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
