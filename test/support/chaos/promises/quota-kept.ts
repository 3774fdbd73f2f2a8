import type { Case } from '../case.ts';

/** At no revision of the store more sandboxes of one user run than the quota allows. */
export const quotaKept = ({ instances, quota, time }: Case): readonly string[] => {
  const steps = [...instances.values()].flatMap(({ spans, claims }) =>
    spans.filter(({ state }) => state === 'running').flatMap(({ from, to }) => [
      { revision: from, owner: claims[0]?.owner ?? '', by: 1 }, { revision: to, owner: claims[0]?.owner ?? '', by: -1 },
    ])).sort((a, b) => a.revision - b.revision || a.by - b.by);
  const running = new Map<string, number>();
  const found: string[] = [];
  for (const { revision, owner, by } of steps) {
    const now = (running.get(owner) ?? 0) + by;
    running.set(owner, now);
    if (by > 0 && now > quota) found.push(`${owner} had ${now} sandboxes at revision ${revision} (${time.earliest(revision).toFixed(0)}-${time.latest(revision).toFixed(0)}), ${quota} allowed`);
  }
  return found;
};
