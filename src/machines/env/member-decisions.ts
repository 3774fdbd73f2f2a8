import type { MemberState } from '../../model/envs/env.ts';
import { matchesSpec, memberPoolPart } from '../../model/envs/env-rendering.ts';
import type { MemberContext, MemberFact, MemberIntent } from './member-events.ts';

/** Time for the request that adds a member to create its pool. */
export const MAKING_MS = 10_000;
const FIRST_PAUSE_MS = 2_000;
const AGAIN_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

export const isLeaving = ({ env, member }: MemberFact): boolean =>
  env === undefined || env.deleting !== false || member === undefined || member.deleting !== false;

export const isGone = ({ env, member, pool }: MemberFact): boolean =>
  pool === undefined && (env === undefined || member === undefined);

export const isRemote = ({
  fact: { member },
  localCluster,
}: Pick<MemberContext, 'fact' | 'localCluster'>): boolean =>
  member !== undefined && member.clusterId !== localCluster;

export const isUnreachable = (context: Pick<MemberContext, 'fact' | 'localCluster'>): boolean =>
  isRemote(context) && context.fact.away?.reachable !== true;

export const isSynced = ({ env, member, pool, away }: MemberFact): boolean =>
  away?.pool?.synced === true ||
  (env !== undefined &&
    member !== undefined &&
    pool !== undefined &&
    matchesSpec(pool, memberPoolPart(env, member)));

export const memberStateOf = (context: MemberContext): MemberState => {
  const { fact, trouble, now } = context;
  if (isLeaving(fact)) return 'Draining';
  if (isUnreachable(context)) return 'Unreachable';
  if (trouble) return 'Error';
  if (!poolOf(fact)) return 'Pending';
  return fact.saturatedUntil > now ? 'Saturated' : 'Active';
};

export interface MemberDecision {
  readonly intent?: MemberIntent;
  readonly postponed: boolean;
  readonly deadline: number | undefined;
}

/** Decides the next action if none is in progress, and when to check again without an event. */
export const decisionOf = (context: MemberContext, now: number): MemberDecision => {
  const { fact } = context;
  const saturatedUntil = fact.saturatedUntil > now ? fact.saturatedUntil : undefined;
  const mayAct = !isUnreachable(context) || (fact.away?.removed === true && isLeaving(fact));
  const intent = mayAct ? intentOf(fact) : undefined;
  if (!intent) return { postponed: false, deadline: saturatedUntil };
  const notBefore = Math.max(
    intent.type === 'make-pool' ? (fact.member?.createdAt ?? 0) + MAKING_MS : 0,
    pausedUntil(context, intent),
  );
  return notBefore > now
    ? { postponed: true, deadline: Math.min(notBefore, saturatedUntil ?? notBefore) }
    : { intent, postponed: false, deadline: saturatedUntil };
};

export const pauseAfter = (times: number): number =>
  Math.min(FIRST_PAUSE_MS * 2 ** Math.min(times - 1, 10), LONGEST_PAUSE_MS);

/** A completed action is not repeated before facts show it. */
const pausedUntil = (
  { trouble, troubledAt, done }: MemberContext,
  { type }: MemberIntent,
): number =>
  Math.max(
    trouble ? troubledAt + pauseAfter(trouble.times) : 0,
    done?.type === type ? done.at + AGAIN_MS : 0,
  );

const intentOf = (fact: MemberFact): MemberIntent | undefined => {
  if (isLeaving(fact)) return leaveIntentOf(fact);
  if (!poolOf(fact)) return { type: 'make-pool' };
  return !isEnding(fact) && !isSynced(fact) ? { type: 'settle-pool' } : undefined;
};

const leaveIntentOf = (fact: MemberFact): MemberIntent | undefined => {
  const { env, member, pool } = fact;
  if (!poolOf(fact)) return env && member ? { type: 'forget' } : undefined;
  const force = env?.deleting === 'force' || member?.deleting === 'force';
  const isForcedNow = force && pool?.deleting !== 'force';
  return !isEnding(fact) || isForcedNow ? { type: 'end-pool', force } : undefined;
};

const poolOf = ({ pool, away }: MemberFact) => pool ?? away?.pool;

const isEnding = ({ pool, away }: MemberFact): boolean =>
  pool ? pool.deleting !== false : away?.pool?.leaving === true;
