import { z } from 'zod';
import {
  alreadyDecided,
  approvalDenied,
  approvalNotFound,
  approvalRequired,
  consoleSessionRequired,
} from '../../model/approvals/approval-refusals.ts';
import type { Refusal } from '../../model/refusals.ts';
import type { ErrorBody } from '../reply/error-table.ts';

const decidedAt = z
  .string()
  .optional()
  .describe('If a manager forwards the request, the cluster whose rule applies decides.');

export const approvalDetails = (said: (refusal: Refusal) => ErrorBody) => ({
  APPROVAL_REQUIRED: {
    detail: z.object({
      approvalId: z.string(),
      operation: z.string(),
      summary: z.string(),
      expiresAt: z.string(),
      clusterID: decidedAt,
      hint: z.string(),
    }),
    example: said(
      approvalRequired({
        id: '01a21a8e-a887-7738-8b09-9f212a599a4d',
        operation: 'deletePool',
        summary: 'Delete a pool: DELETE /sandboxpools/web',
        expiresAt: Date.parse('2026-03-01T12:15:00.000Z'),
      }),
    ),
  },
  APPROVAL_DENIED: {
    detail: z.object({
      approvalId: z.string().optional(),
      reason: z.string().optional(),
      clusterID: decidedAt,
      hint: z.string(),
    }),
    example: said(
      approvalDenied({ id: '01a21a8e-a887-7738-8b09-9f212a599a4d', reason: 'not on a Friday' }),
    ),
  },
  CONSOLE_SESSION_REQUIRED: {
    detail: z.object({ hint: z.string() }),
    example: said(consoleSessionRequired()),
  },
  APPROVAL_NOT_FOUND: { example: said(approvalNotFound()) },
  ALREADY_DECIDED: {
    detail: z.object({ status: z.string() }),
    example: said(alreadyDecided('approved')),
  },
});

export const APPROVAL_NOTES: Readonly<Record<string, string>> = {
  listApprovals:
    "The caller's own approvals; admins and console sessions see everybody's. Finished " +
    'ones are stored up to a number (`approvals.kept`).',
  getApproval: "Only operators' console sessions see the contents of the request.",
  decideApproval: `
Needs a console session of an operator or admin who logged in within the last 15 minutes; a key is
refused. If there is more than one operator, requesters cannot decide on their own requests. The
requester is the user of the key of the request, or of a key that this key was created by.
Decisions are final.`,
};
