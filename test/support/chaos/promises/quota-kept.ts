import type { Case } from '../case.ts';

/** At every revision of the store. */
export const quotaKept = (seen: Case): readonly string[] => [
  ...sandboxesKept(seen),
  ...replicasKept(seen),
];

const sandboxesKept = ({ instances, quota, time }: Case): readonly string[] => {
  const steps = [...instances.values()]
    .flatMap(({ spans, claims }) =>
      spans
        .filter(({ state }) => state === 'running')
        .flatMap(({ from, to }) => [
          { revision: from, owner: claims[0]?.owner ?? '', by: 1 },
          { revision: to, owner: claims[0]?.owner ?? '', by: -1 },
        ]),
    )
    .sort((a, b) => a.revision - b.revision || a.by - b.by);
  const running = new Map<string, number>();
  const found: string[] = [];
  for (const { revision, owner, by } of steps) {
    const now = (running.get(owner) ?? 0) + by;
    running.set(owner, now);
    if (by > 0 && now > quota)
      found.push(
        `${owner} had ${now} sandboxes at revision ${revision} (${time.earliest(revision).toFixed(0)}-${time.latest(revision).toFixed(0)}), ${quota} allowed`,
      );
  }
  return found;
};

const replicasKept = ({ pools, replicaQuota, time }: Case): readonly string[] => {
  const steps = [...pools]
    .flatMap(([key, { states }]) => states.map(({ revision, state }) => ({ key, revision, state })))
    .sort((a, b) => a.revision - b.revision);
  const asked = new Map<string, Map<string, number>>();
  const owners = new Map<string, string>();
  const found: string[] = [];
  for (const { key, revision, state } of steps) {
    const owner = state?.owner || owners.get(key) || '';
    if (owner === '') continue;
    owners.set(key, owner);
    const of = asked.get(owner) ?? new Map<string, number>();
    asked.set(owner, of);
    const before = of.get(key) ?? 0;
    of.set(key, state && !state.deleting ? state.replicas : 0);
    const all = [...of.values()].reduce((sum, replicas) => sum + replicas, 0);
    if ((of.get(key) ?? 0) > before && all > replicaQuota)
      found.push(
        `${owner}'s pools asked for ${all} replicas at revision ${revision} (${time.earliest(revision).toFixed(0)}-${time.latest(revision).toFixed(0)}), ${replicaQuota} allowed`,
      );
  }
  return found;
};
