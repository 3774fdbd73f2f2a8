import type { Operations } from '../../operations/operations.ts';
import { refuseAdminFields } from '../admin-fields.ts';
import { presentIssuedApiKey } from '../presenters/present-api-key.ts';
import { created, route, secret, type Route } from '../route.ts';
import { AdminCreateApiKeyBody, CreateApiKeyBody, IssuedApiKey } from '../schemas/api-keys.ts';

export const apiKeyRoutes = (operations: Operations): readonly Route[] => [
  route({
    method: 'POST', path: '/api-keys', access: 'tenant', summary: 'Create a key for the caller',
    body: CreateApiKeyBody, answers: { 201: IssuedApiKey }, refusals: ['ADMIN_REQUIRED', 'ALREADY_EXISTS', 'CONFLICT', 'UNAVAILABLE'],
    handle: async ({ caller, body }) => {
      refuseAdminFields(caller, body, ['team', 'user', 'role']);
      const forOther = body.team !== undefined || body.user !== undefined || body.role !== undefined;
      const create = forOther ? operations.createApiKeyForTenant : operations.createApiKey;
      return secret(created(presentIssuedApiKey(await create(caller, body))));
    },
  }),
  route({
    method: 'POST', path: '/admin/api-keys', access: 'admin', summary: 'Create a key for any team and user',
    body: AdminCreateApiKeyBody, answers: { 201: IssuedApiKey }, refusals: ['ALREADY_EXISTS', 'CONFLICT', 'UNAVAILABLE'],
    handle: async ({ caller, body }) => secret(created(presentIssuedApiKey(await operations.createApiKeyForTenant(caller, body)))),
  }),
];
