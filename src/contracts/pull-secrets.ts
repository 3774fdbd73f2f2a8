import type { RegistryCredentials } from '../model/pools/pool-source.ts';

/** By the uid of its record: a pool, or an env for all its members' pools. */
export interface PullSecretOwner {
  readonly kind: 'pool' | 'env';
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** Stored apart from the records, never returned, and deleted with their owner. */
export interface PullSecrets {
  /**
   * Replaces the owner's passwords; durable. Call it before the owner's record is written, so that
   * no instance starts without them, and again afterwards, to tie them to its lifetime.
   */
  keep(owner: PullSecretOwner, registries: readonly RegistryCredentials[]): Promise<void>;
  /**
   * For an owner that was never created, no longer exists, or no longer has passwords. Idempotent.
   */
  forget(owner: Pick<PullSecretOwner, 'namespace' | 'uid'>): Promise<void>;
}
