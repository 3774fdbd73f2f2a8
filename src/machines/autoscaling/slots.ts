import type { AutoscalingGroup } from '../../model/envs/autoscaling-group.ts';
import type { GroupCounts, ScalingChange } from '../../model/envs/scaling-decision.ts';
import { getOwn } from '../../lib/plain-data.ts';
import type { GroupMemory } from './memory.ts';
import type { MemberObservation, MemberRules } from './observation.ts';

export interface Slot {
  readonly name: string;
  readonly seen: MemberObservation;
  readonly rules: MemberRules;
  /** The minimum if the owner's bounds contradict each other. */
  readonly floor: number;
  readonly ceiling: number;
  readonly willing: boolean;
  readonly stuck: number;
  readonly to: number;
}

export const slotsOf = (
  rules: readonly MemberRules[],
  members: readonly MemberObservation[],
  memory: GroupMemory,
): readonly Slot[] =>
  rules.flatMap((rule) => {
    const seen = members.find(({ name }) => name === rule.name);
    if (!seen) return [];
    // unreachable members cannot be resized
    const { minReplicas, maxReplicas } = seen.reachable
      ? rule
      : { minReplicas: seen.desired, maxReplicas: seen.desired };
    const ceiling = Math.max(minReplicas, maxReplicas);
    return [
      {
        name: rule.name,
        seen,
        rules: rule,
        floor: minReplicas,
        ceiling,
        stuck: 0,
        to: seen.desired,
        willing: seen.reachable && getOwn(memory.saturated, rule.name) === undefined,
      },
    ];
  });

export const boundsOf = (
  slots: readonly Slot[],
  group: AutoscalingGroup,
): { readonly least: number; readonly most: number } => {
  const most = Math.max(
    group.maxReplicas,
    sumOf(slots, ({ floor }) => floor),
  );
  return { least: Math.min(group.minReplicas, most), most };
};

export const comingOf = ({ to, stuck, seen }: Slot): number =>
  Math.max(0, to - stuck - seen.running - seen.idle - seen.unavailable);

export const countsOf = (slots: readonly Slot[]): GroupCounts => ({
  desired: sumOf(slots, ({ to }) => to),
  running: sumOf(slots, ({ seen }) => seen.running),
  idle: sumOf(slots, ({ seen }) => (seen.reachable ? seen.idle : 0)),
  starting: sumOf(slots, comingOf),
  pending: sumOf(slots, ({ seen }) => seen.pending),
});

export const isStable = ({ seen, to, floor, ceiling, willing, stuck }: Slot): boolean =>
  willing &&
  stuck === 0 &&
  to === seen.desired &&
  to >= floor &&
  to <= ceiling &&
  seen.unavailable === 0 &&
  seen.running + seen.idle === to;

export const roomOf = ({ willing, ceiling, to, seen }: Slot): number =>
  willing
    ? Math.max(
        0,
        Math.min(
          ceiling - to,
          (seen.quota ?? Number.MAX_SAFE_INTEGER) - Math.max(0, to - seen.desired),
        ),
      )
    : 0;

/** Claims that none of its instances can serve, as far as it can grow. */
export const unansweredOf = (slot: Slot): number =>
  Math.min(roomOf(slot), Math.max(0, slot.seen.pending - slot.seen.idle - comingOf(slot)));

/** Each starts one instance at once. */
export const unservedOf = (slot: Slot): number =>
  Math.min(roomOf(slot), Math.max(0, (slot.seen.waiting ?? 0) - slot.seen.idle - comingOf(slot)));

/** Members with waiting claims first, then by priority, room and name. */
export const raised = (slots: readonly Slot[], amount: number): readonly Slot[] => {
  const order = slots.toSorted(
    (a, b) =>
      b.rules.scaleUpPriority - a.rules.scaleUpPriority || roomOf(b) - roomOf(a) || byName(a, b),
  );
  const answered = shared(order, amount, { most: unansweredOf, sign: 1 });
  return inOrderOf(slots, shared(answered.slots, answered.left, { most: roomOf, sign: 1 }).slots);
};

/** By priority, idle count and name. */
export const cut = (
  slots: readonly Slot[],
  amount: number,
  give: (slot: Slot) => number,
): readonly Slot[] => {
  const order = slots.toSorted(
    (a, b) =>
      b.rules.scaleDownPriority - a.rules.scaleDownPriority ||
      b.seen.idle - a.seen.idle ||
      byName(a, b),
  );
  return inOrderOf(slots, shared(order, amount, { most: give, sign: -1 }).slots);
};

export const changesOf = (slots: readonly Slot[]): readonly ScalingChange[] =>
  slots
    .filter(({ to, seen }) => to !== seen.desired)
    .map(({ name, seen, to }) => ({ member: name, from: seen.desired, to }));

export const sumOf = (slots: readonly Slot[], of: (slot: Slot) => number): number =>
  slots.reduce((sum, slot) => sum + of(slot), 0);

const shared = (
  slots: readonly Slot[],
  amount: number,
  { most, sign }: { readonly most: (slot: Slot) => number; readonly sign: 1 | -1 },
): { readonly slots: readonly Slot[]; readonly left: number } => {
  let left = amount;
  const given = slots.map((slot) => {
    const share = Math.max(0, Math.min(left, most(slot)));
    left -= share;
    return share === 0 ? slot : { ...slot, to: slot.to + sign * share };
  });
  return { slots: given, left };
};

const inOrderOf = (order: readonly Slot[], slots: readonly Slot[]): readonly Slot[] =>
  order.map((slot) => slots.find(({ name }) => name === slot.name) ?? slot);

const byName = (a: Slot, b: Slot): number => (a.name < b.name ? -1 : 1);
