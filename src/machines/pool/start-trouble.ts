import { isTripped, shortageOf } from './decisions.ts';
import type { PoolContext } from './events.ts';

/**
 * Counts the wanted instances whose starts fail or find no place. Undefined if all that lack may
 * still come.
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
