import type { ApiKeyRecord } from '../model/api-key.ts';
import { apiKeyNotFound } from '../model/refusals.ts';
import { sameTenant } from '../model/tenant.ts';
import type { ApiKeyMirror } from './api-keys.ts';
import type { ApiKeyName, Operations } from './operations.ts';

interface ApiKeysDeps { readonly apiKeys: ApiKeyMirror }

/** The caller's keys, newest first (operation `GET /api-keys`). */
export const listApiKeys = (deps: ApiKeysDeps): Operations['listApiKeys'] => async (caller, page) => deps.apiKeys.list(caller, page);

/** Everyone's, for an admin (operation `GET /admin/api-keys`). */
export const listAllApiKeys = (deps: ApiKeysDeps): Operations['listAllApiKeys'] => async (_caller, page) => deps.apiKeys.list(undefined, page);

/** Revokes a key of the caller's own, also the one that asks (operation `DELETE /api-keys/{keyId}`). Durable when it resolves. */
export const deleteApiKey = (deps: ApiKeysDeps): Operations['deleteApiKey'] => async (caller, keyId) => {
  const record = deps.apiKeys.find(keyId) ?? await deps.apiKeys.lookUp(keyId);
  if (!record || !sameTenant(record, caller)) throw apiKeyNotFound();
  await deps.apiKeys.remove(record);
};

/** Revokes anyone's by its name (operation `DELETE /admin/api-keys/{name}`). Durable when it resolves; answers the key's id. */
export const deleteApiKeyByName = (deps: ApiKeysDeps): Operations['deleteApiKeyByName'] => async (_caller, name) => {
  const record = await apiKeyNamed(deps, name);
  await deps.apiKeys.remove(record);
  return record.keyId;
};

/** Anyone's, also where another replica made it a moment ago. Refuses with API_KEY_NOT_FOUND. */
export const apiKeyNamed = async ({ apiKeys }: ApiKeysDeps, { namespace, shortName }: ApiKeyName): Promise<ApiKeyRecord> => {
  const record = apiKeys.findByName(namespace, shortName) ?? await apiKeys.lookUp(`${namespace}/${shortName}`);
  if (!record) throw apiKeyNotFound();
  return record;
};
