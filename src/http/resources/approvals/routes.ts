import { consoleSessionRequired } from '../../../model/approvals/approval-refusals.ts';
import type { Operations } from '../../../services/operations.ts';
import { ok, route, type Route } from '../../corridor/route.ts';
import { presentPage } from '../present-page.ts';
import { presentApproval, presentApprovalInFull } from './presenter.ts';
import {
  Approval,
  ApprovalInFull,
  ApprovalListQuery,
  ApprovalPage,
  ApprovalPath,
  DecideApprovalBody,
} from './schema.ts';

export const approvalRoutes = (operations: Operations): readonly Route[] => [
  listApprovals(operations),
  getApproval(operations),
  decideApproval(operations),
];

const listApprovals = (operations: Operations): Route =>
  route({
    operationId: 'listApprovals',
    method: 'GET',
    path: '/approvals',
    access: 'tenant',
    sessions: 'also',
    summary: 'List approvals, newest first',
    query: ApprovalListQuery,
    answers: { 200: ApprovalPage },
    refusals: [],
    handle: async ({ caller, session, query: { status, ...page } }) =>
      ok(
        presentPage(
          await operations.listApprovals(session ?? caller, status, page),
          presentApproval,
        ),
      ),
  });

const getApproval = (operations: Operations): Route =>
  route({
    operationId: 'getApproval',
    method: 'GET',
    path: '/approvals/{approvalId}',
    access: 'tenant',
    sessions: 'also',
    summary: 'Get an approval',
    params: ApprovalPath,
    answers: { 200: ApprovalInFull },
    refusals: ['APPROVAL_NOT_FOUND'],
    handle: async ({ caller, session, params: { approvalId } }) =>
      ok(
        presentApprovalInFull(
          await operations.getApproval(session ?? caller, approvalId),
          session && (await operations.approvalContent(session, approvalId)),
        ),
      ),
  });

const decideApproval = (operations: Operations): Route =>
  route({
    operationId: 'decideApproval',
    method: 'POST',
    path: '/approvals/{approvalId}/decision',
    access: 'open',
    sessions: 'alone',
    summary: 'Approve or deny a request in a console session',
    params: ApprovalPath,
    body: DecideApprovalBody,
    effect: { kind: 'unkeyed' },
    answers: { 200: Approval },
    refusals: [
      'CONSOLE_SESSION_REQUIRED',
      'INVALID_API_KEY',
      'FORBIDDEN',
      'APPROVAL_NOT_FOUND',
      'ALREADY_DECIDED',
    ],
    handle: async ({ session, params: { approvalId }, body }) => {
      if (!session) throw consoleSessionRequired();
      const { decision, scope = 'once', reason } = body;
      return ok(
        presentApproval(
          await operations.decideApproval(session, approvalId, { decision, scope, reason }),
        ),
      );
    },
  });
