import type { GroupCounts } from '../../model/envs/scaling-decision.ts';
import { neededIdle, type Moment } from './modes.ts';
import { boundsOf, cut, sumOf, type Slot } from './slots.ts';
import { extremeOf } from './window.ts';

/**
 * The size that the idle counts of the window speak for: what was never needed in it is not
 * counted.
 */
export const recommendationOf = (seen: GroupCounts, desired: number, moment: Moment): number => {
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
export const shrunk = (
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
export const countsDown = (slots: readonly Slot[], seen: GroupCounts, moment: Moment): boolean =>
  moment.group.scaleDownPolicy.idleTimeoutSeconds > 0 &&
  seen.idle > neededIdle(seen, moment) &&
  seen.desired > boundsOf(slots, moment.group).least;

/** Whether what is idle now may go, or may once nobody has used the group for long. */
export const mayShrink = (slots: readonly Slot[], seen: GroupCounts, moment: Moment): boolean =>
  moment.group.scaleDownPolicy.idleTimeoutSeconds > 0 &&
  seen.desired > boundsOf(slots, moment.group).least &&
  (seen.running === 0 || seen.idle > neededIdle(seen, moment));

const spareOf = ({ seen, to, floor }: Slot): number =>
  seen.reachable ? Math.min(seen.settled, to - floor, to - seen.running) : 0;
