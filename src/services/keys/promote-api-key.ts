import type { ApiKeyRecord } from '../../model/api-key.ts';
import { apiKeyAlreadyGlobal, noWorkerConnected } from '../../model/refusals.ts';
import type { ApiKeyMirror } from './api-keys.ts';
import { apiKeyNamed } from './list-api-keys.ts';
import type { KeyOperations } from './key-operations.ts';

export interface Promotions {
  readonly isLinked: () => boolean;
  /** Durable when it resolves. */
  readonly promote: (record: ApiKeyRecord) => Promise<void>;
  /** Resolves once the connected workers have all earlier changes; within 5 s. */
  readonly settled: () => Promise<void>;
}

/**
 * Durable when it resolves, and valid at connected clusters (operation `POST
 * /admin/api-keys/{name}/promote`). Other clusters receive it when they connect.
 */
export const promoteApiKey =
  ({
    apiKeys,
    promotions,
  }: {
    readonly apiKeys: ApiKeyMirror;
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

/** Delays the result of a revoking call until the connected workers have the revocation. */
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
