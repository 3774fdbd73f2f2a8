import type { z } from 'zod';
import type { Caller } from '../../../model/tenant.ts';
import type { ApiKeyName } from '../../../services/keys/key-operations.ts';
import type { Operations } from '../../../services/operations.ts';
import { refuseAdminFields } from '../../corridor/admin-fields.ts';
import {
  presentApiKey,
  presentApiKeyDeletion,
  presentApiKeyPromotion,
  presentApiKeysDeletion,
  presentIssuedApiKey,
} from './presenter.ts';
import { presentPage } from '../present-page.ts';
import { created, ok, route, secret, type Answer, type Route } from '../../corridor/route.ts';
import {
  AdminCreateApiKeyBody,
  ApiKeyDeletion,
  ApiKeyFullNamePath,
  ApiKeyListQuery,
  ApiKeyNamePath,
  ApiKeyPage,
  ApiKeyPath,
  ApiKeyPromotion,
  ApiKeysDeletion,
  CreateApiKeyBody,
  DeleteApiKeyQuery,
  DeleteApiKeysQuery,
  IssuedApiKey,
} from './schema.ts';

export const apiKeyRoutes = (operations: Operations): readonly Route[] => [
  createApiKey(operations),
  listApiKeys(operations),
  deleteApiKey(operations),
  createApiKeyForTenant(operations),
  listAllApiKeys(operations),
  deleteApiKeyByName(operations),
  deleteApiKeyByFullName(operations),
  deleteApiKeysOf(operations),
  promoteApiKey(operations),
  promoteApiKeyByFullName(operations),
];

const createApiKey = (operations: Operations): Route =>
  route({
    operationId: 'createApiKey',
    method: 'POST',
    path: '/api-keys',
    access: 'tenant',
    summary: 'Create a key for the caller',
    body: CreateApiKeyBody,
    answers: { 201: IssuedApiKey },
    refusals: ['ADMIN_REQUIRED', 'ALREADY_EXISTS', 'CONFLICT', 'UNAVAILABLE'],
    effect: { kind: 'repeatable' },
    rules: { onceOnly: true, becomes: (body) => (isForOther(body) ? FOR_TENANT : undefined) },
    handle: async ({ caller, body, keyed }) => {
      refuseAdminFields(caller, body, ['team', 'user', 'role']);
      const create = isForOther(body) ? operations.createApiKeyForTenant : operations.createApiKey;
      return secret(
        created(presentIssuedApiKey(await create(caller, { ...body, seed: keyed?.seed() }))),
      );
    },
  });

const listApiKeys = (operations: Operations): Route =>
  route({
    operationId: 'listApiKeys',
    method: 'GET',
    path: '/api-keys',
    access: 'tenant',
    summary: "List the caller's keys, newest first",
    query: ApiKeyListQuery,
    answers: { 200: ApiKeyPage },
    refusals: [],
    handle: async ({ caller, query }) =>
      ok(presentPage(await operations.listApiKeys(caller, query), presentApiKey)),
  });

const deleteApiKey = (operations: Operations): Route =>
  route({
    operationId: 'deleteApiKey',
    method: 'DELETE',
    path: '/api-keys/{keyId}',
    access: 'tenant',
    summary: "Revoke one of the caller's keys; for admins, any key of the namespace",
    params: ApiKeyPath,
    query: DeleteApiKeyQuery,
    answers: { 200: ApiKeyDeletion },
    refusals: ['ADMIN_REQUIRED', 'API_KEY_NOT_FOUND', 'CONFLICT', 'UNAVAILABLE'],
    effect: { kind: 'repeatable' },
    rules: { onceOnly: true },
    handle: async ({ caller, params: { keyId }, query: { cascade } }) => {
      const revoked = await operations.deleteApiKey(caller, keyId, cascade);
      return ok(presentApiKeyDeletion(keyId, cascade ? revoked : undefined));
    },
  });

const createApiKeyForTenant = (operations: Operations): Route =>
  route({
    operationId: 'createApiKeyForTenant',
    method: 'POST',
    path: '/admin/api-keys',
    access: 'admin',
    summary: 'Create a key for any team and user',
    body: AdminCreateApiKeyBody,
    answers: { 201: IssuedApiKey },
    refusals: ['ALREADY_EXISTS', 'CONFLICT', 'UNAVAILABLE'],
    effect: { kind: 'repeatable' },
    handle: async ({ caller, body, keyed }) =>
      secret(
        created(
          presentIssuedApiKey(
            await operations.createApiKeyForTenant(caller, { ...body, seed: keyed?.seed() }),
          ),
        ),
      ),
  });

const listAllApiKeys = (operations: Operations): Route =>
  route({
    operationId: 'listAllApiKeys',
    method: 'GET',
    path: '/admin/api-keys',
    access: 'admin',
    summary: 'List the keys of all teams and users, newest first',
    query: ApiKeyListQuery,
    answers: { 200: ApiKeyPage },
    refusals: [],
    handle: async ({ caller, query }) =>
      ok(presentPage(await operations.listAllApiKeys(caller, query), presentApiKey)),
  });

const deleteApiKeyByName = (operations: Operations): Route =>
  route({
    operationId: 'deleteApiKeyByName',
    method: 'DELETE',
    path: '/admin/api-keys/{name}',
    access: 'admin',
    summary: 'Revoke any key by name',
    params: ApiKeyNamePath,
    query: DeleteApiKeyQuery,
    answers: { 200: ApiKeyDeletion },
    refusals: ['API_KEY_NOT_FOUND', 'CONFLICT', 'UNAVAILABLE'],
    effect: { kind: 'repeatable' },
    handle: async ({ caller, params: { name }, query: { cascade } }) =>
      await deletedByName(operations, caller, { name: nameOf(name, caller), cascade }),
  });

const deleteApiKeyByFullName = (operations: Operations): Route =>
  route({
    operationId: 'deleteApiKeyByFullName',
    method: 'DELETE',
    path: '/admin/api-keys/{namespace}/{shortName}',
    access: 'admin',
    summary: 'The same, with the name as two segments',
    params: ApiKeyFullNamePath,
    query: DeleteApiKeyQuery,
    answers: { 200: ApiKeyDeletion },
    refusals: ['API_KEY_NOT_FOUND', 'CONFLICT', 'UNAVAILABLE'],
    effect: { kind: 'repeatable' },
    rules: { as: { operationId: 'deleteApiKeyByName', path: '/admin/api-keys/{name}' } },
    handle: async ({ caller, params, query: { cascade } }) =>
      await deletedByName(operations, caller, { name: params, cascade }),
  });

const deleteApiKeysOf = (operations: Operations): Route =>
  route({
    operationId: 'deleteApiKeysOf',
    method: 'DELETE',
    path: '/admin/api-keys',
    access: 'admin',
    summary: 'Revoke all keys of a user',
    query: DeleteApiKeysQuery,
    answers: { 200: ApiKeysDeletion },
    refusals: ['UNAVAILABLE'],
    handle: async ({ caller, query }) =>
      ok(
        presentApiKeysDeletion(
          query.team,
          query.user,
          await operations.deleteApiKeysOf(caller, query),
        ),
      ),
  });

const promoteApiKey = (operations: Operations): Route =>
  route({
    operationId: 'promoteApiKey',
    method: 'POST',
    path: '/admin/api-keys/{name}/promote',
    access: 'admin',
    summary: 'Make a key valid on all worker clusters',
    params: ApiKeyNamePath,
    answers: { 200: ApiKeyPromotion },
    refusals: [
      'API_KEY_NOT_FOUND',
      'ALREADY_GLOBAL',
      'CONFLICT',
      'CLUSTER_UNAVAILABLE',
      'UNAVAILABLE',
    ],
    handle: async ({ caller, params: { name } }) =>
      ok(presentApiKeyPromotion(await operations.promoteApiKey(caller, nameOf(name, caller)))),
  });

const promoteApiKeyByFullName = (operations: Operations): Route =>
  route({
    operationId: 'promoteApiKeyByFullName',
    method: 'POST',
    path: '/admin/api-keys/{namespace}/{shortName}/promote',
    access: 'admin',
    summary: 'The same, with the name as two segments',
    params: ApiKeyFullNamePath,
    answers: { 200: ApiKeyPromotion },
    refusals: [
      'API_KEY_NOT_FOUND',
      'ALREADY_GLOBAL',
      'CONFLICT',
      'CLUSTER_UNAVAILABLE',
      'UNAVAILABLE',
    ],
    rules: { as: { operationId: 'promoteApiKey', path: '/admin/api-keys/{name}/promote' } },
    handle: async ({ caller, params }) =>
      ok(presentApiKeyPromotion(await operations.promoteApiKey(caller, params))),
  });

const FOR_TENANT = { operationId: 'createApiKeyForTenant', path: '/admin/api-keys' };

/** Equivalent to `POST /admin/api-keys`. */
const isForOther = ({ team, user, role }: z.infer<typeof CreateApiKeyBody>): boolean =>
  team !== undefined || user !== undefined || role !== undefined;

const deletedByName = async (
  operations: Operations,
  caller: Caller,
  { name, cascade }: { readonly name: ApiKeyName; readonly cascade: boolean },
): Promise<Answer> => {
  const { keyId, revoked } = await operations.deleteApiKeyByName(caller, name, cascade);
  return ok(presentApiKeyDeletion(keyId, cascade ? revoked : undefined));
};

const nameOf = (name: string, caller: Caller): ApiKeyName => {
  const [shortName = '', namespace = caller.namespace] = name.split('/').reverse();
  return { namespace, shortName };
};
