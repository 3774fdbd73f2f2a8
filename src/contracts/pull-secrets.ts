import type { RegistryCredentials } from '../model/pools/pool-source.ts';

/**
 * Owner of registry passwords, by the uid of its record: a pool, or an env for all its members'
 * pools.
 */
export interface PullSecretOwner {
  readonly kind: 'pool' | 'env';
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/**
 * Registry passwords of pools and envs. They are stored apart from the records, never returned, and
 * deleted with their owner.
 */
export interface PullSecrets {
  /**
   * Replaces the owner's passwords. Durable when it resolves; later launches use them. Call it
   * before the owner's record is written, so that no instance starts without them. Call it again
   * once the record exists, to tie the passwords to its lifetime.
   */
  keep(owner: PullSecretOwner, registries: readonly RegistryCredentials[]): Promise<void>;
  /**
   * Deletes the passwords of an owner that was never created, no longer exists, or no longer has
   * any. Idempotent.
   */
  forget(owner: Pick<PullSecretOwner, 'namespace' | 'uid'>): Promise<void>;
}
