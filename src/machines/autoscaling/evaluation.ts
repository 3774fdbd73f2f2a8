import type { AutoscalingGroup } from '../../model/envs/autoscaling-group.ts';
import type {
  GroupCounts,
  GrowthLimit,
  ScalingDecision,
} from '../../model/envs/scaling-decision.ts';
import { boundsKept, roomMade, troublesSettled } from './corrections.ts';
import { growthOf, isQuiet, type Growth } from './growth.ts';
import { limitsHeld, looking, newLimits, recommending, type GroupMemory } from './memory.ts';
import { neededIdle, type Moment } from './modes.ts';
import type { MemberObservation, MemberRules } from './observation.ts';
import { countsDown, mayShrink, recommendationOf, shrunk } from './shrinkage.ts';
import {
  boundsOf,
  changesOf,
  countsOf,
  isStable,
  raised,
  roomOf,
  slotsOf,
  sumOf,
  type Slot,
} from './slots.ts';

export interface GroupInput {
  readonly group: AutoscalingGroup;
  readonly rules: readonly MemberRules[];
  readonly members: readonly MemberObservation[];
  readonly memory: GroupMemory;
  /** ms */
  readonly now: number;
}

/** Describes what was seen and wanted, whether or not it led to a decision. */
export interface Outlook {
  readonly at: number;
  readonly seen: GroupCounts;
  readonly wanted: number;
  /**
   * Says what keeps the group from having what is wanted; empty where it has that, or will soon.
   */
  readonly limitedBy: readonly string[];
  /** Limits among these that only something else than time ends. */
  readonly limits: readonly GrowthLimit[];
  /** More are idle than needed, and wait for the windows to end. */
  readonly countsDown: boolean;
  /** When time alone allows what demand asks for; undefined: it does not, or nobody knows. */
  readonly retryAt: number | undefined;
  /**
   * Time alone leads to no decision: as long as nothing of the members moves there is nothing to
   * look at.
   */
  readonly atRest: boolean;
  /** By member: how many more it may have. */
  readonly headroom: Readonly<Record<string, number>>;
}

export interface Evaluation {
  readonly decision: ScalingDecision | undefined;
  /** Without the decision, which may come to nothing. */
  readonly memory: GroupMemory;
  readonly outlook: Outlook;
}

/**
 * Decides what a group should do now. In this order: the failed part of a scale-up is taken back
 * and its member left alone; bounds that somebody changed are kept at once; members make room for
 * claims that wait on another one; what demand asks for is added; what was idle all through the
 * windows goes. Running instances are never counted away, and what is only starting is never a
 * reason to add. A limit that keeps it from growing is a decision once.
 */
export const evaluateGroup = (input: GroupInput): Evaluation => {
  const { group, now } = input;
  const looked = looking(input.memory, input.members, group, now);
  const found = slotsOf(input.rules, input.members, looked);
  const settled = troublesSettled(found, looked, group, now);
  const bounded = boundsKept(settled.slots, group);
  const roomy = roomMade(bounded.slots, group);
  const seen = countsOf(roomy.slots);
  const growth = growthOf(roomy.slots, seen, { group, memory: settled.memory, now });
  const grown = growth.add > 0 ? raised(roomy.slots, growth.add) : roomy.slots;
  const recommendation = recommendationOf(
    seen,
    sumOf(grown, ({ to }) => to),
    { group, memory: settled.memory, now },
  );
  const memory = recommending(
    { ...limitsHeld(settled.memory, growth.limits, now), lowSince: growth.lowSince },
    recommendation,
    group,
    now,
  );
  const moment = { group, memory, now };
  // At the group's most demand on one member adds nothing, until what others do not need has gone.
  const isFull = seen.desired >= boundsOf(grown, group).most;
  const calm = (growth.missing <= 0 || isFull) && changesOf(grown).length === 0;
  const end = calm ? shrunk(grown, seen, moment) : { slots: grown, limitedBy: [] };
  const buffer = neededIdle(seen, moment);
  const limitedBy = [...growth.limitedBy, ...end.limitedBy];
  const wanted = seen.running + seen.pending + buffer;
  const outlook = {
    at: now,
    seen,
    wanted,
    limitedBy,
    limits: growth.limits,
    countsDown: countsDown(grown, seen, moment),
    retryAt: growth.retryAt,
    atRest: (growth.missing <= 0 || isQuiet(seen, moment)) && isAtRest(end.slots, seen, moment),
    headroom: headroomOf(end.slots, group),
  };
  const changes = changesOf(end.slots);
  if (changes.length === 0 && newLimits(settled.memory, growth.limits).length === 0)
    return { decision: undefined, memory, outlook };
  const words = [...settled.words, ...bounded.words, ...roomy.words];
  const decision: ScalingDecision = {
    id: Math.max(now, memory.last + 1, ...found.map(({ seen: { decided } }) => decided + 1)),
    at: now,
    cause:
      settled.words.length > 0
        ? 'failure'
        : growth.add > 0 || changes.length === 0
          ? 'demand'
          : bounded.words.length > 0
            ? 'limits'
            : roomy.words.length > 0
              ? 'demand'
              : 'surplus',
    changes,
    seen,
    wanted,
    ...limitsOf(growth, limitedBy),
    reason: [
      ...words,
      ...(growth.add > 0 || changes.length === 0
        ? [demandWords(seen, group, buffer)]
        : calm
          ? [surplusWords(group)]
          : []),
    ].join('; '),
  };
  return { decision, memory, outlook };
};

/**
 * Lists limits: what keeps it from growing stands first; a wait that goes on besides comes after.
 */
const limitsOf = (
  { add, limits }: Growth,
  limitedBy: readonly string[],
): Pick<ScalingDecision, 'limitedBy' | 'limits'> =>
  limits.length === 0
    ? { limitedBy }
    : {
        limits,
        limitedBy: add > 0 ? limitedBy : limits.map(({ message }) => message),
      };

const demandWords = (
  { running, idle, starting, pending }: GroupCounts,
  { scaleUpPolicy: { mode } }: AutoscalingGroup,
  buffer: number,
): string =>
  `${running} running, ${idle} idle, ${starting} starting, ${pending} asked for; ${mode} ` +
  `wants ${buffer} idle`;

const surplusWords = ({ scaleDownPolicy: { idleTimeoutSeconds } }: AutoscalingGroup): string =>
  `not needed for ${idleTimeoutSeconds} s`;

/** All members have what they should, within all bounds, and nothing goes with time. */
const isAtRest = (slots: readonly Slot[], seen: GroupCounts, moment: Moment): boolean =>
  slots.every(isStable) &&
  seen.starting === 0 &&
  seen.desired >= boundsOf(slots, moment.group).least &&
  !mayShrink(slots, seen, moment);

const headroomOf = (
  slots: readonly Slot[],
  group: AutoscalingGroup,
): Readonly<Record<string, number>> => {
  const left = Math.max(0, boundsOf(slots, group).most - sumOf(slots, ({ to }) => to));
  return Object.fromEntries(slots.map((slot) => [slot.name, Math.min(left, roomOf(slot))]));
};
