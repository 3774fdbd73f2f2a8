import type { ApprovalMirror } from '../../actors/approval/approval-mirror.ts';
import type { Clock } from '../../contracts/clock.ts';
import { decided, isExpired, type ApprovalTerms } from '../../model/approvals/approval-changes.ts';
import {
  alreadyDecided,
  approvalNotFound,
  logInAgain,
  mayNotDecide,
  ownApproval,
} from '../../model/approvals/approval-refusals.ts';
import type { ApprovalRecord } from '../../model/approvals/approval.ts';
import { mayDecide, type ConsoleSession } from '../../model/console-session.ts';
import { invalidArgument } from '../../model/refusals.ts';
import { sameTenant } from '../../model/tenant.ts';
import type { ApprovalOperations, ApprovalViewer } from './approval-operations.ts';
import type { SealedContents } from './sealed-contents.ts';

export interface ApprovalsDeps {
  readonly mirror: ApprovalMirror;
  readonly contents: SealedContents;
  readonly clock: Clock;
  readonly terms: ApprovalTerms;
  readonly severalDecide: () => boolean;
}

/** Deciding requires a login that is at most this old, in ms. */
export const STEP_UP_MS = 15 * 60_000;

export const approvalOperations = (deps: ApprovalsDeps): ApprovalOperations => {
  const { mirror, contents, clock } = deps;
  const shown = (record: ApprovalRecord): ApprovalRecord =>
    isExpired(record, clock.now()) ? { ...record, status: 'expired' } : record;
  const find = async (viewer: ApprovalViewer, id: string): Promise<ApprovalRecord> => {
    const record = await mirror.whole(id);
    if (!record || !maySee(viewer, record)) throw approvalNotFound();
    return shown(record);
  };
  return {
    listApprovals: async (viewer, status, page) => {
      const user = 'kind' in viewer || viewer.role === 'admin' ? undefined : viewer;
      const { items, total } = mirror.page({ user, status }, page);
      return { items: items.map(shown), total, ...page };
    },
    getApproval: find,
    approvalContent: async (session, id) => {
      if (!mayDecide(session)) return undefined;
      const { content } = await find(session, id);
      return content === undefined ? undefined : contents.open(id, content);
    },
    decideApproval: async (session, id, { decision, scope, reason }) => {
      if (!mayDecide(session)) throw mayNotDecide();
      if (clock.now() - session.authenticatedAt > STEP_UP_MS) throw logInAgain();
      const severalDecide = deps.severalDecide();
      const record = await mirror.amend(id, (standing) => {
        if (standing.status !== 'pending') throw alreadyDecided(standing.status);
        if (isExpired(standing, clock.now())) throw alreadyDecided('expired');
        if (severalDecide && isOwn(standing, session)) throw ownApproval();
        if (decision === 'approve' && scope === 'session') checkSession(standing);
        // refuses to approve unreadable content
        if (decision === 'approve' && standing.content !== undefined)
          contents.open(id, standing.content);
        return decided(
          standing,
          { verdict: decision, scope, by: session.operator, reason },
          { now: clock.now(), terms: deps.terms },
        );
      });
      if (!record) throw approvalNotFound();
      return record;
    },
  };
};

const maySee = (viewer: ApprovalViewer, { principal }: ApprovalRecord): boolean =>
  'kind' in viewer || viewer.role === 'admin' || sameTenant(viewer, principal);

/** Compares names without case: a person who may be the requester counts as the requester. */
const isOwn = ({ principal }: ApprovalRecord, session: ConsoleSession): boolean => {
  const names = new Set(
    [session.operator, ...(session.users ?? [])].map((name) => name.toLowerCase()),
  );
  return principal.persons.some((person) => names.has(person.toLowerCase()));
};

const checkSession = ({ onceOnly, sessionId }: ApprovalRecord): void => {
  if (onceOnly)
    throw invalidArgument('scope', 'must be once: this operation can only be approved once', [
      'once',
    ]);
  if (sessionId === undefined)
    throw invalidArgument('scope', 'must be once: the request names no X-Session-Id', ['once']);
};
