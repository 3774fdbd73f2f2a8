import type { ApiKeyRecord } from '../../model/api-key.ts';
import { apiKeyPromotedElsewhere } from '../../model/fleet/cluster-refusals.ts';
import { adminRequired, apiKeyNotFound } from '../../model/refusals.ts';
import { sameTenant, type Caller } from '../../model/tenant.ts';
import type { ApiKeyMirror } from './api-keys.ts';
import type { ApiKeyName, KeyOperations } from './key-operations.ts';
import { revokeApiKeys } from './revoke-api-keys.ts';

interface ApiKeysDeps {
  readonly apiKeys: ApiKeyMirror;
}

/** The caller's keys, newest first (operation `GET /api-keys`). */
export const listApiKeys =
  (deps: ApiKeysDeps): KeyOperations['listApiKeys'] =>
  async (caller, page) =>
    deps.apiKeys.list(caller, page);

/** Finds the key of a name; a DELETE by it that was approved is meant for that key alone. */
export const keyIdOf =
  (deps: ApiKeysDeps): KeyOperations['keyIdOf'] =>
  async (name) =>
    (await apiKeyNamed(deps, name)).keyId;

/** Everyone's, for an admin (operation `GET /admin/api-keys`). */
export const listAllApiKeys =
  (deps: ApiKeysDeps): KeyOperations['listAllApiKeys'] =>
  async (_caller, page) =>
    deps.apiKeys.list(undefined, page);

/** Admins reach every key of the namespace that they name, which is their own where they don't. */
const isInReach = (record: ApiKeyRecord, caller: Caller): boolean =>
  sameTenant(record, caller) || (caller.role === 'admin' && record.namespace === caller.namespace);

/** Finds a key that the caller may revoke (operation `DELETE /api-keys/{keyId}`). */
export const getApiKey =
  ({ apiKeys }: ApiKeysDeps): KeyOperations['getApiKey'] =>
  async (caller, keyId) => {
    const record = apiKeys.find(keyId) ?? (await apiKeys.lookUp(keyId));
    if (!record || !isInReach(record, caller)) throw apiKeyNotFound();
    return record;
  };

/**
 * Revokes a key of the caller's own, also the one that asks; an admin's, any of the namespace
 * (operation `DELETE /api-keys/{keyId}`). Durable when it resolves.
 */
export const deleteApiKey =
  (deps: ApiKeysDeps): KeyOperations['deleteApiKey'] =>
  async (caller, keyId, cascade) => {
    const record = await getApiKey(deps)(caller, keyId);
    return await revoked(deps, { caller, record, cascade });
  };

/**
 * Revokes anyone's by its name (operation `DELETE /admin/api-keys/{name}`). Durable when it
 * resolves.
 */
export const deleteApiKeyByName =
  (deps: ApiKeysDeps): KeyOperations['deleteApiKeyByName'] =>
  async (caller, name, cascade) => {
    const record = await apiKeyNamed(deps, name);
    return { keyId: record.keyId, revoked: await revoked(deps, { caller, record, cascade }) };
  };

/**
 * Revokes all keys of a user and, with `cascade`, what they made (operation `DELETE
 * /admin/api-keys`); copies of what a manager promoted stay. Durable when it resolves.
 */
export const deleteApiKeysOf =
  (
    deps: ApiKeysDeps & { readonly namespaceOf: (team: string) => string },
  ): KeyOperations['deleteApiKeysOf'] =>
  async (_caller, { team, user, cascade }) => {
    const tenant = { namespace: deps.namespaceOf(team), team, user };
    return await revokeApiKeys(deps.apiKeys, {
      isMeant: (record) => sameTenant(record, tenant) && record.promotedBy === undefined,
      cascade,
    });
  };

interface Meant {
  readonly caller: Caller;
  readonly record: ApiKeyRecord;
  readonly cascade: boolean;
}

/**
 * Revokes a key, and with `cascade` what it made; returns how many those are. What a key with the
 * admin role made may be anyone's, so it takes one to revoke them. All else that a key made is of
 * its own user.
 */
const revoked = async (
  { apiKeys }: ApiKeysDeps,
  { caller, record, cascade }: Meant,
): Promise<number> => {
  if (record.promotedBy !== undefined) throw apiKeyPromotedElsewhere('revoke it there');
  if (cascade && record.role === 'admin' && caller.role !== 'admin') throw adminRequired();
  if (cascade)
    return await revokeApiKeys(apiKeys, {
      isMeant: ({ keyId }) => keyId === record.keyId,
      cascade,
    });
  await apiKeys.remove(record);
  return 1;
};

/** Anyone's, also where another replica made it a moment ago. Refuses with API_KEY_NOT_FOUND. */
export const apiKeyNamed = async (
  { apiKeys }: ApiKeysDeps,
  { namespace, shortName }: ApiKeyName,
): Promise<ApiKeyRecord> => {
  const record =
    apiKeys.findByName(namespace, shortName) ?? (await apiKeys.lookUp(`${namespace}/${shortName}`));
  if (!record) throw apiKeyNotFound();
  return record;
};
