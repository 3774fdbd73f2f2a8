import { longestWithout } from '../calm.ts';
import type { Case } from '../case.ts';
import type { Look } from '../history.ts';
import type { LifeState, PoolLife } from '../lives.ts';

const WITHIN_MS = 10_000;

/** After 10 s of calm. Booting instances count. */
export const poolsFull = (seen: Case): readonly string[] => {
  const steps = usableSteps(seen);
  return [...seen.pools.values()].flatMap((pool) => {
    const uid = pool.states.findLast(({ state }) => state?.poolUid)?.state?.poolUid;
    if (uid === undefined) return [];
    const full = fullTimes(pool, steps.get(uid) ?? []);
    const [born, gone] = [
      pool.states[0]?.revision ?? 0,
      pool.states.at(-1)?.state ? Infinity : (pool.states.at(-1)?.revision ?? 0),
    ];
    const resized = pool.states
      .filter(({ state }, n) => state?.replicas !== pool.states[n - 1]?.state?.replicas)
      .map(({ revision }) => revision);
    const mayBeFull = ({ asked, answered }: Look): boolean | undefined => {
      const { first, last } = seen.time.between(asked - WITHIN_MS, answered);
      if (resized.some((revision) => revision > first && revision <= last)) return undefined;
      const now = seen.time.between(asked, answered);
      return full.some(({ from, to }) => from <= now.last && to > now.first);
    };
    return seen.rests.flatMap((rest) => {
      const { first, last } = seen.time.between(rest.from, rest.until);
      const withoutMs = born > last || gone < first ? 0 : longestWithout(rest, mayBeFull);
      return withoutMs < WITHIN_MS
        ? []
        : [
            `${pool.namespace}/${pool.name} was not full for ${withoutMs.toFixed(0)} ms of calm, in ${rest.from.toFixed(0)}-${rest.until.toFixed(0)}`,
          ];
    });
  });
};

interface Step {
  readonly revision: number;
  readonly by: number;
  readonly limit?: number;
}

const HAD: readonly LifeState[] = ['booting', 'idle', 'running'];

const usableSteps = ({ all: { instances } }: Case): ReadonlyMap<string, readonly Step[]> => {
  const steps = new Map<string, Step[]>();
  for (const { poolUid, spans } of instances.values()) {
    const of = steps.get(poolUid) ?? [];
    steps.set(poolUid, of);
    for (const { state, from, to } of spans)
      if (HAD.includes(state)) of.push({ revision: from, by: 1 }, { revision: to, by: -1 });
  }
  return steps;
};

/** A missing or deleted pool needs nothing. */
const fullTimes = (
  { states }: PoolLife,
  steps: readonly Step[],
): readonly { readonly from: number; readonly to: number }[] => {
  const limits = states.map(({ revision, state }): Step => ({
    revision,
    by: 0,
    limit: state && !state.deleting ? state.replicas : 0,
  }));
  const found: { from: number; to: number }[] = [{ from: 0, to: Infinity }];
  let [usable, limit] = [0, 0];
  for (const step of [...steps, ...limits].sort((a, b) => a.revision - b.revision)) {
    usable += step.by;
    limit = step.limit ?? limit;
    const open = found.at(-1);
    if (usable >= limit && open?.to !== Infinity) found.push({ from: step.revision, to: Infinity });
    else if (usable < limit && open?.to === Infinity) open.to = step.revision;
  }
  return found;
};
