import type { AutoscalingGroup } from '../../model/envs/autoscaling-group.ts';
import { getOwn } from '../../lib/plain-data.ts';
import { saturating, saturationUntil, type GroupMemory } from './memory.ts';
import type { Moment } from './modes.ts';
import { boundsOf, changesOf, cut, raised, sumOf, unservedOf, type Slot } from './slots.ts';

/** Empty if nothing was corrected. */
export interface Correction {
  readonly slots: readonly Slot[];
  readonly words: readonly string[];
}

/** Shrinks members by the instances that fail to start, and holds their growth for a while. */
export const troublesSettled = (
  slots: readonly Slot[],
  { group, memory, now }: Moment,
): Correction & { readonly memory: GroupMemory } => {
  const words: string[] = [];
  let remembered = memory;
  const settled = slots.map((slot): Slot => {
    const {
      seen: { trouble, desired, running },
      name,
    } = slot;
    if (!trouble || trouble.count <= 0 || trouble.since < (getOwn(memory.grown, name) ?? 0))
      return slot;
    if (!getOwn(memory.saturated, name))
      remembered = saturating(remembered, name, {
        until: saturationUntil(group, now, trouble.until),
        reason: trouble.reason,
      });
    const to = Math.min(desired, Math.max(slot.floor, running, desired - trouble.count));
    if (to < desired) words.push(`${name}: ${desired - to} could not start (${trouble.reason})`);
    return { ...slot, to, stuck: trouble.count - (desired - to), willing: false };
  });
  return { slots: settled, words, memory: remembered };
};

/**
 * Windows and cooldowns do not delay the owner's bounds. Running sandboxes stay counted, but the
 * owner's maximum wins, and no sandbox ends for it.
 */
export const boundsKept = (slots: readonly Slot[], group: AutoscalingGroup): Correction => {
  const own = slots.map((slot): Slot => {
    const { floor, ceiling, to, seen, willing } = slot;
    if (to > ceiling) return { ...slot, to: ceiling };
    const least = Math.max(floor, Math.min(seen.running, ceiling));
    return to < least && willing
      ? {
          ...slot,
          to: Math.max(to, Math.min(least, seen.desired + (seen.quota ?? Number.MAX_SAFE_INTEGER))),
        }
      : slot;
  });
  const { least, most } = boundsOf(own, group);
  const total = sumOf(own, ({ to }) => to);
  const bounded =
    total > most ? lessened(own, total - most) : total < least ? raised(own, least - total) : own;
  const changed = bounded.some(({ to }, index) => to !== slots[index]?.to);
  return {
    slots: bounded,
    words: changed ? [`bounds: ${least} to ${most} in all${ownBounds(bounded)}`] : [],
  };
};

/**
 * Shrinks members so that claims waiting on another member fit under the group's maximum. No window
 * delays this.
 */
export const roomMade = (slots: readonly Slot[], group: AutoscalingGroup): Correction => {
  const { most } = boundsOf(slots, group);
  const left = Math.max(0, most - sumOf(slots, ({ to }) => to));
  const lacking = sumOf(slots, unservedOf) - left;
  if (lacking <= 0) return { slots, words: [] };
  const reduced = cut(slots, lacking, unaskedOf);
  return {
    slots: reduced,
    words: changesOf(reduced)
      .filter(({ member, to }) => to < (slots.find(({ name }) => name === member)?.to ?? 0))
      .map(({ member }) => `${member} makes room for claims that wait on another member`),
  };
};

const unaskedOf = ({ to, floor, seen }: Slot): number =>
  seen.reachable
    ? Math.max(0, to - Math.max(floor, seen.running + Math.max(seen.pending, seen.waiting ?? 0)))
    : 0;

/** Idle and starting instances go before running ones are counted off. */
const lessened = (slots: readonly Slot[], excess: number): readonly Slot[] => {
  const spare = ({ to, floor, seen }: Slot): number => to - Math.max(floor, seen.running);
  const first = cut(slots, excess, spare);
  const left = excess - (sumOf(slots, ({ to }) => to) - sumOf(first, ({ to }) => to));
  return left > 0 ? cut(first, left, ({ to, floor }) => to - floor) : first;
};

const ownBounds = (slots: readonly Slot[]): string =>
  slots
    .filter(({ to, seen }) => to !== seen.desired)
    .map(({ name, floor, ceiling }) => `, ${name} ${floor} to ${ceiling}`)
    .join('');
