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

/** Newest first (operation `GET /api-keys`). */
export const listApiKeys =
  (deps: ApiKeysDeps): KeyOperations['listApiKeys'] =>
  async (caller, page) =>
    deps.apiKeys.list(caller, page);

/** An approved DELETE by name applies only to the key that had it. */
export const keyIdOf =
  (deps: ApiKeysDeps): KeyOperations['keyIdOf'] =>
  async (name) =>
    (await apiKeyNamed(deps, name)).keyId;

/** For an admin (operation `GET /admin/api-keys`). */
export const listAllApiKeys =
  (deps: ApiKeysDeps): KeyOperations['listAllApiKeys'] =>
  async (_caller, page) =>
    deps.apiKeys.list(undefined, page);

/** Admins reach every key of the given namespace, by default their own. */
const isInReach = (record: ApiKeyRecord, caller: Caller): boolean =>
  sameTenant(record, caller) || (caller.role === 'admin' && record.namespace === caller.namespace);

/** A key that the caller may revoke (operation `DELETE /api-keys/{keyId}`). */
export const getApiKey =
  ({ apiKeys }: ApiKeysDeps): KeyOperations['getApiKey'] =>
  async (caller, keyId) => {
    const record = apiKeys.find(keyId) ?? (await apiKeys.lookUp(keyId));
    if (!record || !isInReach(record, caller)) throw apiKeyNotFound();
    return record;
  };

/**
 * The caller's, including the current one; an admin may revoke any key of the namespace (operation
 * `DELETE /api-keys/{keyId}`). Durable when it resolves.
 */
export const deleteApiKey =
  (deps: ApiKeysDeps): KeyOperations['deleteApiKey'] =>
  async (caller, keyId, cascade) => {
    const record = await getApiKey(deps)(caller, keyId);
    return await revoked(deps, { caller, record, cascade });
  };

/** Any user's (operation `DELETE /admin/api-keys/{name}`). Durable when it resolves. */
export const deleteApiKeyByName =
  (deps: ApiKeysDeps): KeyOperations['deleteApiKeyByName'] =>
  async (caller, name, cascade) => {
    const record = await apiKeyNamed(deps, name);
    return { keyId: record.keyId, revoked: await revoked(deps, { caller, record, cascade }) };
  };

/**
 * With `cascade`, also the keys that they made (operation `DELETE /admin/api-keys`). Copies of a
 * manager's promoted keys stay. Durable when it resolves.
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
 * An admin's key may have made keys of any user, so only an admin may revoke those. All other keys
 * only make keys of their own user.
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

/** Even if another replica has just created it. Refuses with API_KEY_NOT_FOUND. */
export const apiKeyNamed = async (
  { apiKeys }: ApiKeysDeps,
  { namespace, shortName }: ApiKeyName,
): Promise<ApiKeyRecord> => {
  const record =
    apiKeys.findByName(namespace, shortName) ?? (await apiKeys.lookUp(`${namespace}/${shortName}`));
  if (!record) throw apiKeyNotFound();
  return record;
};
