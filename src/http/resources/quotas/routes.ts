import type { Operations } from '../../../services/operations.ts';
import { presentQuotas } from './presenter.ts';
import { ok, route, type Route } from '../../corridor/route.ts';
import {
  quotaChangeOf,
  QuotaList,
  QuotasQuery,
  SetQuotasBody,
  SetQuotasQuery,
  UserPath,
} from './schema.ts';

export const quotaRoutes = (operations: Operations): readonly Route[] => [
  route({
    operationId: 'getQuotas',
    method: 'GET',
    path: '/quotas',
    access: 'tenant',
    summary: "Get the caller's quotas and usage",
    query: QuotasQuery,
    answers: { 200: QuotaList },
    refusals: ['UNAVAILABLE'],
    handle: async ({ caller }) => ok(presentQuotas(await operations.getQuotas(caller))),
  }),
  route({
    operationId: 'getQuotasOf',
    method: 'GET',
    path: '/admin/quotas/{team}/{user}',
    access: 'admin',
    summary: "Get a user's quotas and usage",
    params: UserPath,
    query: QuotasQuery,
    answers: { 200: QuotaList },
    refusals: ['NOT_FOUND', 'UNAVAILABLE'],
    handle: async ({ caller, params }) =>
      ok(presentQuotas(await operations.getQuotasOf(caller, params))),
  }),
  route({
    operationId: 'setQuotasOf',
    method: 'PUT',
    path: '/admin/quotas/{team}/{user}',
    access: 'admin',
    summary: "Change a user's quotas; omitted fields stay unchanged",
    params: UserPath,
    query: SetQuotasQuery,
    body: SetQuotasBody,
    answers: { 200: QuotaList },
    refusals: ['NOT_FOUND', 'CONFLICT', 'UNAVAILABLE'],
    handle: async ({ caller, params, body }) =>
      ok(presentQuotas(await operations.setQuotasOf(caller, params, quotaChangeOf(body)))),
  }),
];
