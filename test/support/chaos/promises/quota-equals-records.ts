import { longestWithout } from '../calm.ts';
import type { Case } from '../case.ts';
import type { Look, Usage } from '../history.ts';

/** Leaders settle unused reservations after 30 s, in rounds of 10 s. */
const WITHIN_MS = 60_000;

/** At rest. */
export const quotaEqualsRecords = (seen: Case): readonly string[] => {
  const steps = stepsOf(seen);
  const users = new Set(
    seen.rests.flatMap(({ looks }) => looks.flatMap(({ usage }) => Object.keys(usage))),
  );
  const excused = seen.disturbances.flatMap(({ namespace }) => namespace ?? []);
  return [...users]
    .filter((user) => !excused.some((namespace) => user.startsWith(`${namespace}/`)))
    .flatMap((user) =>
      seen.rests.flatMap((rest) => {
        const of = steps.get(user) ?? [];
        const withoutMs = longestWithout(rest, (look) =>
          isTrue(seen, of, look.usage[user] && { ...look, told: look.usage[user] }),
        );
        if (withoutMs < WITHIN_MS) return [];
        const last = rest.looks.findLast(({ usage }) => usage[user]);
        const there = countAt(of, Infinity);
        return [
          `usage of ${user} was told as ${JSON.stringify(last?.usage[user])} for ${withoutMs.toFixed(0)} ms of calm, in ${rest.from.toFixed(0)}-${rest.until.toFixed(0)}; at the end of the log there are ${JSON.stringify(there)}`,
        ];
      }),
    );
};

interface Step {
  readonly revision: number;
  readonly by: Usage;
}

const stepsOf = ({ all: { instances, pools } }: Case): ReadonlyMap<string, readonly Step[]> => {
  const steps = new Map<string, Step[]>();
  const add = (owner: string, step: Step): void => {
    const of = steps.get(owner) ?? [];
    steps.set(owner, of);
    of.push(step);
  };
  for (const { spans, claims } of instances.values()) {
    for (const { state, from, to } of spans) {
      if (state !== 'running') continue;
      add(claims[0]?.owner ?? '', { revision: from, by: { sandboxes: 1, pools: 0, replicas: 0 } });
      add(claims[0]?.owner ?? '', { revision: to, by: { sandboxes: -1, pools: 0, replicas: 0 } });
    }
  }
  for (const { states } of pools.values()) {
    const owner = states.find(({ state }) => state?.owner)?.state?.owner;
    if (owner === undefined) continue;
    let [there, replicas] = [0, 0];
    for (const { revision, state } of states) {
      const [nowThere, nowReplicas] = [state ? 1 : 0, state?.replicas ?? 0];
      add(owner, {
        revision,
        by: { sandboxes: 0, pools: nowThere - there, replicas: nowReplicas - replicas },
      });
      [there, replicas] = [nowThere, nowReplicas];
    }
  }
  for (const of of steps.values()) of.sort((a, b) => a.revision - b.revision);
  return steps;
};

/** Whether some revision during the look matches; undefined without usage. */
const isTrue = (
  { time }: Case,
  steps: readonly Step[],
  look: (Look & { readonly told: Usage }) | undefined,
): boolean | undefined => {
  if (!look) return undefined;
  const { first, last } = time.between(look.asked, look.answered);
  const revisions = [
    first,
    ...steps.flatMap(({ revision }) => (revision > first && revision <= last ? [revision] : [])),
  ];
  return revisions.some((revision) => {
    const { sandboxes, pools, replicas } = countAt(steps, revision);
    return (
      sandboxes === look.told.sandboxes &&
      pools === look.told.pools &&
      replicas === look.told.replicas
    );
  });
};

const countAt = (steps: readonly Step[], revision: number): Usage => {
  const sum = { sandboxes: 0, pools: 0, replicas: 0 };
  for (const { revision: at, by } of steps) {
    if (at > revision || at === Infinity) break;
    sum.sandboxes += by.sandboxes;
    sum.pools += by.pools;
    sum.replicas += by.replicas;
  }
  return sum;
};
