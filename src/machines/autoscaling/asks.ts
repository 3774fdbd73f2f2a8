import type { ScalingDecision } from '../../model/envs/scaling-decision.ts';
import type { Asks } from './group-events.ts';
import type { MemberObservation } from './observation.ts';

/**
 * Says what members on other clusters are asked to have at most from a decision on: the larger size
 * of a change, since the smaller one may be overtaken; of all others what they have, so that no
 * cluster takes later what was refused, or what went to other members meanwhile.
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
