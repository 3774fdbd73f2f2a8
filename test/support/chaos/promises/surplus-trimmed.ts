import { askedToEnd, type Case } from '../case.ts';
import type { Disturbance, Moment } from '../history.ts';

/** How long a takeover may leave a surplus. */
const TRIM_MS = 5_000;
/** What a disturbance leaves behind may show so long after it: a paused replica wakes with a write in its hands. */
const AFTERMATH_MS = 12_000;

/**
 * A pool has no more instances than `replicas`, but for 5 s after a takeover. One that was asked to end does not count: its
 * replacement may be born before it is gone. Nor does a record that never got a Pod, and is retired for it: nothing of it is live. Time in which nobody leads, or can write, does not count either.
 */
export const surplusTrimmed = (seen: Case): readonly string[] => {
  const steps = new Map<string, Step[]>();
  for (const life of seen.instances.values()) {
    if (!life.hadPod) continue;
    const until = Math.min(seen.time.reachedBy(askedToEnd(seen, life.id)) + 1, life.ended ?? Infinity, firstEnd(life.spans));
    const from = life.spans[0]?.from ?? 0;
    if (until <= from) continue;
    const of = steps.get(life.poolUid) ?? [];
    steps.set(life.poolUid, of);
    of.push({ revision: from, live: 1 }, { revision: until, live: -1 });
  }
  return [...seen.pools.values()].flatMap(({ name, states }) => {
    const uid = states.findLast(({ state }) => state?.poolUid)?.state?.poolUid;
    if (uid === undefined) return [];
    const limits = states.map(({ revision, state }): Step => ({ revision, live: 0, limit: state && !state.deleting ? state.replicas : Infinity }));
    return excessesOf([...steps.get(uid) ?? [], ...limits]).flatMap(({ from, to, most }) => {
      const [since, until] = [seen.time.latest(from), to === Infinity ? seen.sightings.at(-1)?.asked ?? Infinity : seen.time.earliest(to)];
      const calm = calmWithin(since, until, seen.disturbances);
      const caused = seen.disturbances.some((one) => seen.time.earliest(from) <= Math.max(one.to, one.led) + AFTERMATH_MS && since >= one.from);
      if (calm <= TRIM_MS && caused) return [];
      return [`${name} had ${most} more than its replicas from revision ${from} to ${to} (${since.toFixed(0)}-${until.toFixed(0)}, ${calm.toFixed(0)} ms undisturbed${caused ? '' : ', after no fault'})`];
    });
  });
};

interface Step { readonly revision: number; readonly live: number; readonly limit?: number }

const firstEnd = (spans: readonly { readonly state: string; readonly from: number }[]): number =>
  spans.find(({ state }) => state === 'ended')?.from ?? Infinity;

const excessesOf = (steps: readonly Step[]): readonly { readonly from: number; readonly to: number; readonly most: number }[] => {
  const found: { from: number; to: number; most: number }[] = [];
  let [live, limit] = [0, Infinity];
  let open: { from: number; to: number; most: number } | undefined;
  for (const step of [...steps].sort((a, b) => a.revision - b.revision || a.live - b.live)) {
    live += step.live;
    limit = step.limit ?? limit;
    if (live > limit) {
      if (!open) found.push(open = { from: step.revision, to: Infinity, most: 0 });
      open.most = Math.max(open.most, live - limit);
    } else if (open) {
      open.to = step.revision;
      open = undefined;
    }
  }
  return found;
};

/** How much of the time lies where a leader could have trimmed. */
const calmWithin = (since: Moment, until: Moment, disturbances: readonly Disturbance[]): number => {
  let [calm, at] = [0, since];
  for (const { from, led } of [...disturbances].sort((a, b) => a.from - b.from)) {
    const [begin, end] = [Math.max(from, since), Math.min(led, until)];
    if (end <= at || begin >= until) continue;
    calm += Math.max(0, begin - at);
    at = Math.max(at, end);
  }
  return calm + Math.max(0, until - at);
};
