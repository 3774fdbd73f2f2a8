import type { LoadOrder } from '../load-protocol.ts';
import type { IdleOrder } from './idle-instances.ts';

/** What the raw client is told; one order after the other. */
export type RawOrder =
  | { readonly kind: 'open'; readonly kubeconfig: string }
  | { readonly kind: 'make records'; readonly namespace: string; readonly count: number }
  /** Pods of nobody, which run. */
  | { readonly kind: 'make pods'; readonly namespace: string; readonly count: number }
  | { readonly kind: 'give back' }
  /**
   * `put`: claims a record each; `lean put`: as the product puts it. `patch`: claims a Pod each, by
   * its labels.
   */
  | {
      readonly kind: 'claim';
      readonly by: 'put' | 'lean put' | 'patch';
      readonly count: number;
      readonly mode: LoadOrder['mode'];
    }
  | ({ readonly kind: 'make idle'; readonly adminKubeconfig: string } & IdleOrder)
  /** A paged list of both kinds. */
  | { readonly kind: 'list' }
  /** Creates Pods, and waits until all run. */
  | {
      readonly kind: 'fill';
      readonly namespace: string;
      readonly count: number;
      readonly width: number;
    }
  /** Deletes them. */
  | {
      readonly kind: 'empty';
      readonly namespace: string;
      readonly count: number;
      readonly width: number;
    };

export interface RawResult {
  /**
   * Milliseconds, in the order of the requests; from the moment that the schedule gave where there
   * is one.
   */
  readonly latencies: readonly number[];
  readonly tookMs: number;
}

export type RawAnswer = { readonly result: RawResult } | { readonly failed: string };
