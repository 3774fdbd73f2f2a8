import { askedToEnd } from '../asked-to-end.ts';
import type { Case } from '../case.ts';
import type { Disturbance, Moment } from '../history.ts';

/** A takeover may leave a surplus this long. */
const TRIM_MS = 5_000;
/** A disturbance may have effects this much later: a paused replica wakes with a pending write. */
const AFTERMATH_MS = 12_000;

/**
 * Except for 5 s after a takeover or a decrease. Instances that are ending, never got a Pod, or
 * lost their labels do not count, nor does time without a leader that can write.
 */
export const surplusTrimmed = (seen: Case): readonly string[] => {
  const steps = stepsOf(seen);
  return [...seen.pools.values()].flatMap(({ name, states }) => {
    const uid = states.findLast(({ state }) => state?.poolUid)?.state?.poolUid;
    if (uid === undefined) return [];
    const limits = states.map(({ revision, state }): Step => ({
      ...NO_STEP,
      revision,
      limit: state && !state.deleting ? state.replicas : Infinity,
    }));
    const causes = [...seen.disturbances, ...shrinkings(seen, limits)];
    return excessesOf([...(steps.get(uid) ?? []), ...limits]).flatMap(({ from, to, most }) => {
      const [since, until] = [
        seen.time.latest(from),
        to === Infinity ? (seen.sightings.at(-1)?.asked ?? Infinity) : seen.time.earliest(to),
      ];
      const calm = calmWithin(since, until, causes);
      const caused = causes.some(
        (one) =>
          seen.time.earliest(from) <= Math.max(one.to, one.led) + AFTERMATH_MS && since >= one.from,
      );
      if (calm <= TRIM_MS && caused) return [];
      return [
        `${name} had ${most} more than its replicas from revision ${from} to ${to} (${since.toFixed(0)}-${until.toFixed(0)}, ${calm.toFixed(0)} ms undisturbed${caused ? '' : ', after no fault'})`,
      ];
    });
  });
};

interface Step {
  readonly revision: number;
  readonly unclaimed: number;
  readonly running: number;
  readonly limit?: number;
}
type Cause = Pick<Disturbance, 'from' | 'to' | 'led'>;

const NO_STEP = { unclaimed: 0, running: 0 } as const;

const stepsOf = (seen: Case): ReadonlyMap<string, readonly Step[]> => {
  const edited = new Set(seen.disturbances.flatMap(({ edited: ids = [] }) => ids));
  const steps = new Map<string, Step[]>();
  for (const life of seen.instances.values()) {
    if (!life.hadPod || edited.has(life.id)) continue;
    const until = Math.min(
      seen.time.reachedBy(askedToEnd(seen, life.id)) + 1,
      life.ended ?? Infinity,
      firstEnd(life.spans),
    );
    const from = life.spans[0]?.from ?? 0;
    if (until <= from) continue;
    const of = steps.get(life.poolUid) ?? [];
    steps.set(life.poolUid, of);
    const claimed = Math.max(from, Math.min(until, life.claims[0]?.revision ?? Infinity));
    of.push(
      { revision: from, unclaimed: 1, running: 0 },
      { revision: claimed, unclaimed: -1, running: 1 },
      { revision: until, unclaimed: 0, running: -1 },
    );
  }
  return steps;
};

/** The owner's doing, which takes time. */
const shrinkings = ({ time }: Case, limits: readonly Step[]): readonly Cause[] =>
  limits.flatMap(({ revision, limit = Infinity }, n) => {
    const at = time.latest(revision);
    const before = limits[n - 1]?.limit ?? Infinity;
    return limit < before && before < Infinity
      ? [{ from: time.earliest(revision), to: at, led: at }]
      : [];
  });

const firstEnd = (spans: readonly { readonly state: string; readonly from: number }[]): number =>
  spans.find(({ state }) => state === 'ended')?.from ?? Infinity;

const excessesOf = (
  steps: readonly Step[],
): readonly { readonly from: number; readonly to: number; readonly most: number }[] => {
  const found: { from: number; to: number; most: number }[] = [];
  let [unclaimed, running, limit] = [0, 0, Infinity];
  let open: { from: number; to: number; most: number } | undefined;
  const inOrder = [...steps].sort(
    (a, b) => a.revision - b.revision || a.unclaimed + a.running - b.unclaimed - b.running,
  );
  for (const [n, step] of inOrder.entries()) {
    unclaimed += step.unclaimed;
    running += step.running;
    limit = step.limit ?? limit;
    if (inOrder[n + 1]?.revision === step.revision) continue;
    const over = Math.min(unclaimed, unclaimed + running - limit);
    if (over > 0) {
      if (!open) found.push((open = { from: step.revision, to: Infinity, most: 0 }));
      open.most = Math.max(open.most, over);
    } else if (open) {
      open.to = step.revision;
      open = undefined;
    }
  }
  return found;
};

/** Time in which a leader could have trimmed. */
const calmWithin = (since: Moment, until: Moment, causes: readonly Cause[]): number => {
  let [calm, at] = [0, since];
  for (const { from, led } of [...causes].sort((a, b) => a.from - b.from)) {
    const [begin, end] = [Math.max(from, since), Math.min(led, until)];
    if (end <= at || begin >= until) continue;
    calm += Math.max(0, begin - at);
    at = Math.max(at, end);
  }
  return calm + Math.max(0, until - at);
};
