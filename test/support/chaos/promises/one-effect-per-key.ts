import { isAcknowledged, type Case } from '../case.ts';

/** Lasts as long as the key's sandbox exists. */
export const oneEffectPerKey = ({ instances, calls }: Case): readonly string[] => {
  const byKey = new Map<string, Set<string>>();
  const note = (key: string, id: string): void => {
    byKey.set(key, (byKey.get(key) ?? new Set()).add(id));
  };
  for (const { id, claims } of instances.values())
    for (const { owner, mark } of claims) if (mark !== undefined) note(`${owner} mark ${mark}`, id);
  for (const call of calls)
    if (
      call.asked.what === 'claim' &&
      call.asked.key !== undefined &&
      isAcknowledged(call) &&
      call.answer?.id !== undefined
    )
      note(`${call.user} key ${call.asked.key}`, call.answer.id);
  const found: string[] = [];
  for (const [key, ids] of byKey) {
    if (ids.size < 2) continue;
    const held = [...ids]
      .map((id) => ({
        id,
        from: instances.get(id)?.claims[0]?.revision ?? 0,
        to: instances.get(id)?.ended ?? Infinity,
      }))
      .sort((a, b) => a.from - b.from);
    held.forEach(({ id, from }, n) => {
      const before = held[n - 1];
      if (before && from < before.to)
        found.push(`${key} claimed ${before.id} and, while that existed, ${id}`);
    });
  }
  return found;
};
