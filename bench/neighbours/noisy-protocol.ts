/**
 * What the process of the noisy tenant is told: which flood, and as whom. Then `begin` and `end`,
 * as often as wanted.
 */
export interface NoisyTerms {
  readonly flood: string;
  readonly port: number;
  /** Of E2B's API; absent if the flood does not use it. */
  readonly compatiblePort?: number;
  readonly key: string;
  /** A stored template whose sandboxes do nothing. */
  readonly template: string;
  /** What inline templates name. */
  readonly image: string;
}

export type NoisyOrder =
  | { readonly kind: 'prepare'; readonly terms: NoisyTerms }
  | { readonly kind: 'begin' }
  | { readonly kind: 'end' };

export type NoisyAnswer =
  | { readonly kind: 'done'; readonly statuses: Readonly<Record<string, number>> }
  | { readonly kind: 'failed'; readonly reason: string };
