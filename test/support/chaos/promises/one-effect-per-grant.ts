import { fingerprintOf } from '../../../../src/http/corridor/idempotency.ts';
import { describeLife, isAcknowledged, said, type Case } from '../case.ts';
import type { ApprovalState, Moment } from '../history.ts';
import type { ApprovalLife, Life } from '../lives.ts';

/** Each used grant has one effect, no effect lacks a grant, and decisions are final. */
export const oneEffectPerGrant = (seen: Case): readonly string[] =>
  seen.gated
    ? [
        ...claimsWithoutGrant(seen),
        ...grantsOfClaims(seen),
        ...endsWithoutGrant(seen),
        ...grantsOfDeletes(seen),
        ...decisions(seen),
        ...courses(seen),
      ]
    : [];

/** The mark of the claim; see marked-answer.ts. */
export const markOfGrant = ({ id, keyId }: { readonly id: string; readonly keyId: string }) =>
  fingerprintOf(
    { namespace: '', team: '', user: '', role: 'user', keyId },
    { method: 'POST', path: '', key: `approval ${id}`, body: Buffer.alloc(0) },
  ).key;

const claimsWithoutGrant = (seen: Case): readonly string[] => {
  const byMark = new Map(
    [...seen.all.approvals].flatMap(([key, { id, states }]) => {
      const keyId = states[0]?.state?.keyId;
      return keyId === undefined ? [] : [[markOfGrant({ id, keyId }), key] as const];
    }),
  );
  return claimsOf(seen).flatMap(({ life, revision, mark }) => {
    const key = byMark.get(mark);
    if (key === undefined) return [`claimed under no approval: ${describeLife(seen, life)}`];
    const approval = seen.approvals.get(key);
    if (!approval || before(approval, revision)?.status === 'consumed') return [];
    return [
      `${approval.id} was not used when it was claimed under it: ${describeLife(seen, life)}`,
    ];
  });
};

const grantsOfClaims = (seen: Case): readonly string[] =>
  ofOperation(seen, 'claimSandbox').flatMap((approval) => {
    const keyId = approval.states[0]?.state?.keyId ?? '';
    const mark = markOfGrant({ id: approval.id, keyId });
    const effects = claimsOf(seen).filter((claim) => claim.mark === mark);
    if (effects.length > 1)
      return [
        `${approval.id} had ${effects.length} effects: ${effects.map(({ life }) => life.id).join(' ')}`,
      ];
    const had = claimsOf({ ...seen, instances: seen.all.instances }).some(
      (claim) => claim.mark === mark,
    );
    return had || !isDone(seen, approval) ? [] : [`${approval.id} was used, and had no effect`];
  });

const endsWithoutGrant = (seen: Case): readonly string[] => {
  const consumed = new Map<string, number>();
  for (const { states } of seen.all.approvals.values())
    for (const { revision, state } of states)
      if (state?.operation === 'deleteSandbox' && state.status === 'consumed')
        consumed.set(state.path, Math.min(revision, consumed.get(state.path) ?? Infinity));
  return claimsOf(seen).flatMap(({ life }) => {
    const { id, poolUid, ended } = life;
    if (ended === undefined || (consumed.get(`/sandboxes/${id}`) ?? Infinity) < ended) return [];
    const byHand = seen.disturbances.filter(({ removed }) => removed.includes(id));
    const otherwise = Math.min(
      seen.forced.get(poolUid) ?? Infinity,
      ...byHand.map(({ from }) => from),
    );
    return otherwise <= seen.time.latest(ended)
      ? []
      : [`ended, and no grant was used for that: ${describeLife(seen, life)}`];
  });
};

const grantsOfDeletes = (seen: Case): readonly string[] =>
  ofOperation(seen, 'deleteSandbox').flatMap((approval) => {
    const id = approval.states[0]?.state?.path.split('/')[2] ?? '';
    const life = seen.instances.get(id);
    return !life || life.spans.at(-1)?.state === 'ended' || !isDone(seen, approval)
      ? []
      : [`${approval.id} was used to end it: ${describeLife(seen, life)}`];
  });

/** A decision is durable when acknowledged, and the only one. */
const decisions = (seen: Case): readonly string[] => {
  const found: string[] = [];
  const by = new Map([...seen.approvals.values()].map((approval) => [approval.id, approval]));
  const excused = new Set(
    [...seen.all.approvals.values()].flatMap(({ id }) => (by.has(id) ? [] : [id])),
  );
  const approvedFrom = new Map<string, Moment>();
  const acknowledged = new Set<string>();
  for (const call of seen.everyCall) {
    const { asked, invoked, completed } = call;
    if (asked.what !== 'decide' || excused.has(asked.approval)) continue;
    const { approval: id, decision } = asked;
    if (decision === 'approve')
      approvedFrom.set(id, Math.min(invoked, approvedFrom.get(id) ?? Infinity));
    if (!isAcknowledged(call)) continue;
    if (acknowledged.has(id)) found.push(`decided once more: ${said(call)}`);
    acknowledged.add(id);
    const status = decision === 'approve' ? 'approved' : 'denied';
    const stood = by.get(id)?.states.find(({ state }) => state?.status === status);
    if (!stood || seen.time.earliest(stood.revision) > completed)
      found.push(`acknowledged before it was durable: ${said(call)}`);
  }
  for (const { id, states } of by.values()) {
    const granted = states.find(({ state }) => state?.status === 'approved');
    if (granted && (approvedFrom.get(id) ?? Infinity) > seen.time.latest(granted.revision))
      found.push(`${id} was approved by nobody`);
  }
  return found;
};

type Status = ApprovalState['status'];
const NEXT: Readonly<Record<Status, readonly Status[]>> = {
  pending: ['pending', 'approved', 'denied', 'expired'],
  approved: ['approved', 'consumed', 'expired'],
  consumed: ['consumed'],
  denied: ['denied'],
  expired: ['expired'],
};

const courses = ({ approvals }: Case): readonly string[] =>
  [...approvals.values()].flatMap(({ id, states }) =>
    states.flatMap(({ state, revision }, n) => {
      const last = n === 0 ? undefined : states[n - 1]?.state;
      if (!state || (n > 0 && !last)) return [];
      const isLegal = last
        ? NEXT[last.status].includes(state.status) || isGivenBack(last, state)
        : state.status === 'pending';
      return isLegal
        ? []
        : [`${id} was ${last?.status ?? 'not there'}, and ${state.status} at revision ${revision}`];
    }),
  );

const isGivenBack = ({ status, use }: ApprovalState, next: ApprovalState): boolean =>
  status === 'consumed' &&
  next.status === 'approved' &&
  use?.attempt === 1 &&
  !use.settled &&
  !next.use;

/** Settled, and not for want of a retry. */
const isDone = (seen: Case, { states }: ApprovalLife): boolean => {
  const settled = states.find(({ state }) => state?.use?.settled === true);
  if (!settled) return false;
  const began = states.findLast(({ state }, n) => {
    const last = states[n - 1]?.state;
    return state?.status === 'consumed' && last?.status !== 'consumed';
  });
  const usedAt = (began?.state?.use?.at ?? 0) - seen.epoch;
  const settledAt = seen.time.latest(settled.revision);
  const since = Math.min(usedAt, seen.time.earliest(began?.revision ?? 0));
  // With a jumped clock times may differ.
  const jumped = seen.disturbances.some(
    ({ kind, from, to }) =>
      kind === 'clock jump' && from <= settledAt && to + CLOCK_SEEN_MS >= since,
  );
  return !jumped && settledAt - usedAt < (seen.gated?.grantMs ?? 0);
};

/** A process notices a jump of its clock this much later. */
const CLOCK_SEEN_MS = 5_000;

interface GatedClaim {
  readonly life: Life;
  readonly revision: number;
  readonly mark: string;
}

const claimsOf = ({ instances, gated }: Pick<Case, 'instances' | 'gated'>): readonly GatedClaim[] =>
  [...instances.values()].flatMap((life) =>
    life.claims.flatMap(({ owner, revision, mark = '' }) =>
      owner === gated?.user ? [{ life, revision, mark: mark.split('.')[0] ?? '' }] : [],
    ),
  );

const ofOperation = ({ approvals }: Case, operation: string): readonly ApprovalLife[] =>
  [...approvals.values()].filter(({ states }) => states[0]?.state?.operation === operation);

const before = ({ states }: ApprovalLife, revision: number): ApprovalState | undefined =>
  states.findLast((one) => one.revision < revision)?.state;
