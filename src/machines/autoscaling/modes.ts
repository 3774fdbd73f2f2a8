import type { AutoscalingGroup, ScaleUpMode } from '../../model/envs/autoscaling-group.ts';
import type { GroupCounts } from '../../model/envs/scaling-decision.ts';
import type { GroupMemory } from './memory.ts';

export interface Moment {
  readonly group: AutoscalingGroup;
  readonly memory: GroupMemory;
  readonly now: number;
}

export const bufferOf = (mode: ScaleUpMode, running: number): number => {
  switch (mode) {
    case 'Conservative':
      return 1;
    case 'Moderate':
      return Math.max(1, Math.ceil(running / 10));
    case 'Aggressive':
      return Math.max(2, Math.ceil(running / 4));
  }
};

/**
 * The mode's buffer; 0 after `idleTimeoutSeconds` without use, so that the group shrinks to its
 * minimum.
 */
export const neededIdle = (
  { running, pending }: GroupCounts,
  { group, memory, now }: Moment,
): number => {
  const {
    scaleUpPolicy: { mode, idleZeroQuietWindowSeconds },
    scaleDownPolicy: { idleTimeoutSeconds },
  } = group;
  const usedAt = Math.max(memory.claimedAt, memory.firstAt);
  const quietFor = Math.max(idleTimeoutSeconds, idleZeroQuietWindowSeconds) * 1_000;
  const unused =
    running === 0 &&
    pending === 0 &&
    idleTimeoutSeconds > 0 &&
    idleZeroQuietWindowSeconds > 0 &&
    now - usedAt > quietFor;
  return unused ? 0 : bufferOf(mode, running);
};

export const stepOf = (mode: ScaleUpMode, desired: number): number => {
  switch (mode) {
    case 'Conservative':
      return Math.max(1, Math.ceil(desired / 10));
    case 'Moderate':
      return Math.max(2, desired);
    case 'Aggressive':
      return Number.MAX_SAFE_INTEGER;
  }
};
