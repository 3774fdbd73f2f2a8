import type { RegistryCredentials } from '../model/pools/pool-source.ts';

/**
 * The owner of registry passwords: a pool, or an env with all its members' pools; by the uid of its
 * record.
 */
export interface PullSecretOwner {
  readonly kind: 'pool' | 'env';
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/**
 * The registry passwords of pools and envs: apart from the records, never given back, gone with
 * their owner.
 */
export interface PullSecrets {
  /**
   * Replaces what is kept for the owner; durable when it resolves, and used by what is started from
   * then on. Comes before the owner's record, so that nothing starts without; `keep` again, once
   * the record is there, ties them to its life.
   */
  keep(owner: PullSecretOwner, registries: readonly RegistryCredentials[]): Promise<void>;
  /**
   * Forgets the passwords of an owner that was never made, is no more, or has none any more. May be
   * repeated.
   */
  forget(owner: Pick<PullSecretOwner, 'namespace' | 'uid'>): Promise<void>;
}
