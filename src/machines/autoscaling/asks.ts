import type { ScalingDecision } from '../../model/envs/scaling-decision.ts';
import type { Asks } from './group-events.ts';
import type { MemberObservation } from './observation.ts';

/**
 * Sizes that members on other clusters may have from this decision on: for a changed member the
 * larger one, since the smaller may be overtaken; for others the current one, so that an amount
 * counts on one cluster only.
 */
export const asksOf = (
  members: readonly MemberObservation[],
  { changes }: Pick<ScalingDecision, 'changes'>,
): Asks =>
  Object.fromEntries(
    members.flatMap(({ name, desired, asked }) => {
      if (!asked) return [];
      const to = changes.find(({ member }) => member === name)?.to ?? 0;
      const is = Math.max(asked.current ? desired : asked.most, to);
      return is === asked.most ? [] : [[name, { was: asked.most, is }]];
    }),
  );
