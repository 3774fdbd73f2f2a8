import type { ScalingDecision } from '../../model/envs/scaling-decision.ts';
import type { Asks } from './group-events.ts';
import type { MemberObservation } from './observation.ts';

/**
 * The largest sizes that members on other clusters are asked to have from this decision on. For a
 * changed member, the larger size of the change, since the smaller one may be overtaken. For all
 * others their current size, so that no cluster later takes an amount that was refused or went to
 * other members.
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
