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
  cut,
} from './slots.ts';
import { extremeOf } from './window.ts';

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
  const plan = planOf(input);
  const outlook = outlookOf(plan);
  return { decision: decisionOf(plan, outlook), memory: plan.moment.memory, outlook };
};

/** Describes what the group should come to, and what led there. */
interface Plan {
  readonly moment: Moment;
  readonly seen: GroupCounts;
  readonly growth: Growth;
  /** With what demand asks for. */
  readonly grown: readonly Slot[];
  /** Nothing changes and nothing lacks, so that what is not needed may go. */
  readonly calm: boolean;
  /** As each member should be. */
  readonly slots: readonly Slot[];
  readonly limitedBy: readonly string[];
  readonly buffer: number;
  /** The words that each correction says of itself. */
  readonly words: Readonly<Record<'troubles' | 'bounds' | 'room', readonly string[]>>;
  /** A limit of the growth was not known before. */
  readonly isNewlyLimited: boolean;
  /** The least id of a decision that follows all others. */
  readonly nextId: number;
}

const planOf = ({ group, rules, members, memory, now }: GroupInput): Plan => {
  const looked = looking(memory, members, { group, now });
  const found = slotsOf(rules, members, looked);
  const settled = troublesSettled(found, { group, memory: looked, now });
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
  const limited = { ...limitsHeld(settled.memory, growth.limits, now), lowSince: growth.lowSince };
  const moment = { group, memory: recommending(limited, recommendation, { group, now }), now };
  // At the group's most demand on one member adds nothing, until what others do not need has gone.
  const isFull = seen.desired >= boundsOf(grown, group).most;
  const calm = (growth.missing <= 0 || isFull) && changesOf(grown).length === 0;
  const end = calm ? shrunk(grown, seen, moment) : { slots: grown, limitedBy: [] };
  return {
    moment,
    seen,
    growth,
    grown,
    calm,
    slots: end.slots,
    limitedBy: [...growth.limitedBy, ...end.limitedBy],
    buffer: neededIdle(seen, moment),
    words: { troubles: settled.words, bounds: bounded.words, room: roomy.words },
    isNewlyLimited: newLimits(settled.memory, growth.limits).length > 0,
    nextId: Math.max(
      now,
      moment.memory.last + 1,
      ...found.map(({ seen: { decided } }) => decided + 1),
    ),
  };
};

const outlookOf = ({ moment, seen, growth, grown, slots, limitedBy, buffer }: Plan): Outlook => ({
  at: moment.now,
  seen,
  wanted: seen.running + seen.pending + buffer,
  limitedBy,
  limits: growth.limits,
  countsDown: countsDown(grown, seen, moment),
  retryAt: growth.retryAt,
  atRest: (growth.missing <= 0 || isQuiet(seen, moment)) && isAtRest(slots, seen, moment),
  headroom: headroomOf(slots, moment.group),
});

/** The decision of a plan that changes something, or that meets a limit for the first time. */
const decisionOf = (plan: Plan, { at, seen, wanted }: Outlook): ScalingDecision | undefined => {
  const changes = changesOf(plan.slots);
  if (changes.length === 0 && !plan.isNewlyLimited) return undefined;
  const isDemand = plan.growth.add > 0 || changes.length === 0;
  return {
    id: plan.nextId,
    at,
    cause: causeOf(plan.words, isDemand),
    changes,
    seen,
    wanted,
    ...limitsOf(plan.growth, plan.limitedBy),
    reason: reasonOf(plan, isDemand),
  };
};

/** Names the first in the order of the evaluation that led to the decision. */
const causeOf = (words: Plan['words'], isDemand: boolean): ScalingDecision['cause'] => {
  if (words.troubles.length > 0) return 'failure';
  if (isDemand) return 'demand';
  if (words.bounds.length > 0) return 'limits';
  return words.room.length > 0 ? 'demand' : 'surplus';
};

const reasonOf = ({ words, seen, moment, buffer, calm }: Plan, isDemand: boolean): string => {
  const said = [...words.troubles, ...words.bounds, ...words.room];
  if (isDemand) said.push(demandWords(seen, moment.group, buffer));
  else if (calm) said.push(surplusWords(moment.group));
  return said.join('; ');
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

/**
 * The size that the idle counts of the window speak for: what was never needed in it is not
 * counted.
 */
const recommendationOf = (seen: GroupCounts, desired: number, moment: Moment): number => {
  const {
    group: {
      scaleDownPolicy: { idleTimeoutSeconds },
    },
    memory,
    now,
  } = moment;
  const least =
    idleTimeoutSeconds > 0 ? extremeOf(memory.idle, now, idleTimeoutSeconds * 1_000) : undefined;
  return least === undefined ? desired : desired - Math.max(0, least - neededIdle(seen, moment));
};

/**
 * Takes away what the highest recommendation of the stabilization window leaves over, and says what
 * keeps it from more. Never below what demand asks for: that would be added again.
 */
const shrunk = (
  slots: readonly Slot[],
  seen: GroupCounts,
  moment: Moment,
): { readonly slots: readonly Slot[]; readonly limitedBy: readonly string[] } => {
  const { group, memory, now } = moment;
  const { stabilizationSeconds, protectionWindowSeconds } = group.scaleDownPolicy;
  const desired = sumOf(slots, ({ to }) => to);
  const target = extremeOf(memory.recommended, now, stabilizationSeconds * 1_000) ?? desired;
  const wanted = seen.running + seen.pending + neededIdle(seen, moment);
  const excess = desired - Math.max(target, wanted, boundsOf(slots, group).least);
  if (excess <= 0) return { slots, limitedBy: [] };
  if (memory.grewAt > 0 && now - memory.grewAt < protectionWindowSeconds * 1_000) {
    return { slots, limitedBy: [`nothing goes for ${protectionWindowSeconds} s after a scale-up`] };
  }
  const fewer = cut(slots, excess, spareOf);
  const kept = excess - (desired - sumOf(fewer, ({ to }) => to));
  return {
    slots: fewer,
    limitedBy:
      kept > 0
        ? [`${kept} more are younger than ${protectionWindowSeconds} s, or their member's least`]
        : [],
  };
};

/** Whether what is idle now may go once the windows are over. */
const countsDown = (slots: readonly Slot[], seen: GroupCounts, moment: Moment): boolean =>
  moment.group.scaleDownPolicy.idleTimeoutSeconds > 0 &&
  seen.idle > neededIdle(seen, moment) &&
  seen.desired > boundsOf(slots, moment.group).least;

/** Whether what is idle now may go, or may once nobody has used the group for long. */
const mayShrink = (slots: readonly Slot[], seen: GroupCounts, moment: Moment): boolean =>
  moment.group.scaleDownPolicy.idleTimeoutSeconds > 0 &&
  seen.desired > boundsOf(slots, moment.group).least &&
  (seen.running === 0 || seen.idle > neededIdle(seen, moment));

const spareOf = ({ seen, to, floor }: Slot): number =>
  seen.reachable ? Math.min(seen.settled, to - floor, to - seen.running) : 0;
