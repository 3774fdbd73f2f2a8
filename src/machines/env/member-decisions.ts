import type { MemberState } from '../../model/envs/env.ts';
import { matchesSpec, memberPoolPart } from '../../model/envs/env-rendering.ts';
import type { MemberContext, MemberFact, MemberIntent } from './member-events.ts';

/** For so long a request that adds a member makes its pool by itself. */
export const MAKING_MS = 10_000;
const FIRST_PAUSE_MS = 2_000;
const AGAIN_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

/** It, its env, or both are to go; so is a pool whose env does not list it. */
export const isLeaving = ({ env, member }: MemberFact): boolean =>
  env === undefined || env.deleting !== false || member === undefined || member.deleting !== false;

export const isGone = ({ env, member, pool }: MemberFact): boolean =>
  pool === undefined && (env === undefined || member === undefined);

export const isRemote = ({
  fact: { member },
  localCluster,
}: Pick<MemberContext, 'fact' | 'localCluster'>): boolean =>
  member !== undefined && member.clusterId !== localCluster;

/** Its cluster does not answer: nothing is known of it now, and nothing can be done for it. */
export const isUnreachable = (context: Pick<MemberContext, 'fact' | 'localCluster'>): boolean =>
  isRemote(context) && context.fact.away?.reachable !== true;

/** Whether its pool is there as its env asks. */
export const isSynced = ({ env, member, pool, away }: MemberFact): boolean =>
  away?.pool?.synced === true ||
  (env !== undefined &&
    member !== undefined &&
    pool !== undefined &&
    matchesSpec(pool, memberPoolPart(env, member)));

/** Tells what a member is for its owner. */
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
  /** Something is to be done, and not yet. */
  readonly postponed: boolean;
  readonly deadline: number | undefined;
}

/**
 * Decides what is to be done next while nothing is under way, and when to look again where nothing
 * tells.
 */
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

/** Milliseconds that it is left alone after so many failures in a row. */
export const pauseAfter = (times: number): number =>
  Math.min(FIRST_PAUSE_MS * 2 ** Math.min(times - 1, 10), LONGEST_PAUSE_MS);

/**
 * Tells until when an intent waits: what was just done is not done again before facts have told of
 * it.
 */
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

/** Ends the pool of a member that is to go, then forgets the member. */
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
