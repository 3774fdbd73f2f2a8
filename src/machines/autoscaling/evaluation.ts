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
  readonly now: number;
}

export interface Outlook {
  readonly at: number;
  readonly seen: GroupCounts;
  readonly wanted: number;
  /** Empty if there is no limit, or if time will soon end it. */
  readonly limitedBy: readonly string[];
  /** Those that time alone does not end. */
  readonly limits: readonly GrowthLimit[];
  /** Surplus instances wait for the end of the windows. */
  readonly countsDown: boolean;
  /** When time alone permits the growth; undefined if never or unknown. */
  readonly retryAt: number | undefined;
  /** True if no evaluation is needed until a member changes. */
  readonly atRest: boolean;
  readonly headroom: Readonly<Record<string, number>>;
}

export interface Evaluation {
  readonly decision: ScalingDecision | undefined;
  /** Without the decision, whose save may still fail. */
  readonly memory: GroupMemory;
  readonly outlook: Outlook;
}

/**
 * Decides what a group does now, in the order of `causeOf`. Never counts off running sandboxes, and
 * never grows because of instances that only start. Reports a limit on growth once.
 */
export const evaluateGroup = (input: GroupInput): Evaluation => {
  const plan = planOf(input);
  const outlook = outlookOf(plan);
  return { decision: decisionOf(plan, outlook), memory: plan.moment.memory, outlook };
};

interface Plan {
  readonly moment: Moment;
  readonly seen: GroupCounts;
  readonly growth: Growth;
  readonly grown: readonly Slot[];
  readonly calm: boolean;
  readonly slots: readonly Slot[];
  readonly limitedBy: readonly string[];
  readonly buffer: number;
  readonly words: Readonly<Record<'troubles' | 'bounds' | 'room', readonly string[]>>;
  readonly isNewlyLimited: boolean;
  /** Must exceed all earlier decisions' ids. */
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
  // At the maximum, demand on one member adds nothing until others' surplus has gone.
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
  `${running} running, ${idle} idle, ${starting} starting, ${pending} requested; ${mode} ` +
  `wants ${buffer} idle`;

const surplusWords = ({ scaleDownPolicy: { idleTimeoutSeconds } }: AutoscalingGroup): string =>
  `not needed for ${idleTimeoutSeconds} s`;

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
 * Shrinks to the highest recommendation in the window, never below the demand, which would be added
 * again.
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
    return {
      slots,
      limitedBy: [`no scale-down for ${protectionWindowSeconds} s after a scale-up`],
    };
  }
  const fewer = cut(slots, excess, spareOf);
  const kept = excess - (desired - sumOf(fewer, ({ to }) => to));
  return {
    slots: fewer,
    limitedBy:
      kept > 0
        ? [
            `${kept} more instances are younger than ${protectionWindowSeconds} s, or within a ` +
              "member's minimum",
          ]
        : [],
  };
};

const countsDown = (slots: readonly Slot[], seen: GroupCounts, moment: Moment): boolean =>
  moment.group.scaleDownPolicy.idleTimeoutSeconds > 0 &&
  seen.idle > neededIdle(seen, moment) &&
  seen.desired > boundsOf(slots, moment.group).least;

const mayShrink = (slots: readonly Slot[], seen: GroupCounts, moment: Moment): boolean =>
  moment.group.scaleDownPolicy.idleTimeoutSeconds > 0 &&
  seen.desired > boundsOf(slots, moment.group).least &&
  (seen.running === 0 || seen.idle > neededIdle(seen, moment));

const spareOf = ({ seen, to, floor }: Slot): number =>
  seen.reachable ? Math.min(seen.settled, to - floor, to - seen.running) : 0;
