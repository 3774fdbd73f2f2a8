import type { ApiKeyRecord } from '../../model/api-key.ts';
import { apiKeyAlreadyGlobal, noWorkerConnected } from '../../model/refusals.ts';
import type { ApiKeyMirror } from './api-keys.ts';
import { apiKeyNamed } from './list-api-keys.ts';
import type { KeyOperations } from './key-operations.ts';

/** Has promoted keys count on the clusters of a manager. */
export interface Promotions {
  /** Whether any worker cluster is connected. */
  readonly isLinked: () => boolean;
  /** Durable when it resolves. */
  readonly promote: (record: ApiKeyRecord) => Promise<void>;
  /** Resolves once the workers that are connected know what changed before; within 5 s. */
  readonly settled: () => Promise<void>;
}

/**
 * Has a key count on all worker clusters (operation `POST /admin/api-keys/{name}/promote`). Durable
 * when it resolves, and good at the clusters that are connected; others learn of it as soon as they
 * are.
 */
export const promoteApiKey =
  ({
    apiKeys,
    promotions,
  }: {
    readonly apiKeys: ApiKeyMirror;
    /** Absent: the daemon manages no clusters. */
    readonly promotions: Promotions | undefined;
  }): KeyOperations['promoteApiKey'] =>
  async (_caller, name) => {
    const record = await apiKeyNamed({ apiKeys }, name);
    if (record.global) throw apiKeyAlreadyGlobal();
    if (!promotions?.isLinked()) throw noWorkerConnected();
    await promotions.promote(record);
    await promotions.settled();
    return record.keyId;
  };

/** Has a call that revokes keys resolve once the workers that are connected know of it. */
export const toldToWorkers =
  <Given extends readonly unknown[], Result>(
    promotions: Promotions | undefined,
    revoke: (...given: Given) => Promise<Result>,
  ): ((...given: Given) => Promise<Result>) =>
  async (...given) => {
    const result = await revoke(...given);
    await promotions?.settled();
    return result;
  };
