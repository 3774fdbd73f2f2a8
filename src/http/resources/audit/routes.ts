import type { Operations } from '../../../services/operations.ts';
import { invalidArgument } from '../../../model/refusals.ts';
import { positionsIn } from '../../../model/fleet/cluster-positions.ts';
import { presentAuditRecord } from './presenter.ts';
import { ok, route, type Route } from '../../corridor/route.ts';
import { AuditPage, AuditQuery } from './schema.ts';

export const auditRoutes = (operations: Operations): readonly Route[] => [
  route({
    operationId: 'listAudit',
    method: 'GET',
    path: '/admin/audit',
    access: 'admin',
    summary: 'List audit records, newest first',
    query: AuditQuery,
    answers: { 200: AuditPage },
    refusals: ['FEATURE_DISABLED', 'UNAVAILABLE'],
    handle: async ({ caller, query: { clusterID: _here, ...query } }) => {
      if (query.cursor !== undefined && positionsIn(query.cursor))
        throw invalidArgument('cursor', 'must be a `nextCursor` of this cluster');
      const { items, nextCursor } = await operations.listAudit(caller, query);
      return ok({ items: items.map(presentAuditRecord), nextCursor });
    },
  }),
];
