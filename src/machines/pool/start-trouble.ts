import { isTripped, shortageOf } from './decisions.ts';
import type { PoolContext } from './events.ts';

/**
 * Counts the instances that a pool should have and has not, and that do not come: its starts fail,
 * or find no place, so that it pauses. Undefined where all that lacks may come yet.
 */
export const startTroubleOf = (context: PoolContext, now: number): StartTrouble | undefined => {
  const {
    breaker: { pausedUntil },
    failedAt,
    counts,
  } = context;
  const count = shortageOf(context) + counts.starting + context.ordered;
  if (count <= 0 || !(isTripped(context) || pausedUntil > now)) return undefined;
  return {
    reason: isTripped(context) ? 'start failures' : 'unschedulable',
    count,
    since: failedAt,
    until: pausedUntil > now ? pausedUntil : undefined,
  };
};

export interface StartTrouble {
  readonly reason: 'start failures' | 'unschedulable';
  readonly count: number;
  readonly since: number;
  readonly until?: number;
}
