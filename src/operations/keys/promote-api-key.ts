import { apiKeyAlreadyGlobal, noWorkerConnected } from '../../model/refusals.ts';
import type { ApiKeyMirror } from './api-keys.ts';
import { apiKeyNamed } from './list-api-keys.ts';
import type { Operations } from '../operations.ts';

/**
 * Has a key count on all worker clusters (operation `POST /admin/api-keys/{name}/promote`). No
 * worker can be connected to this version, so that it comes to a refusal: that the key counts there
 * already, or that there is no way to tell them.
 */
export const promoteApiKey =
  (deps: { readonly apiKeys: ApiKeyMirror }): Operations['promoteApiKey'] =>
  async (_caller, name) => {
    const { global = false } = await apiKeyNamed(deps, name);
    throw global ? apiKeyAlreadyGlobal() : noWorkerConnected();
  };
