import type { ApiKeyRecord } from '../../model/api-key.ts';
import type { PromotedTrust } from '../../services/keys/promoted-trust.ts';

/** A manager that is not heard now, and when it last was. */
export interface UnheardManager {
  readonly manager: string;
  readonly since: number;
}

/** Finds the managers of copies that are not heard now, the one of the longest silence first. */
export const unheardManagers = (
  copies: Iterable<ApiKeyRecord>,
  trust: PromotedTrust,
): readonly UnheardManager[] => {
  const heard = new Set(trust.reports.managers);
  const since = new Map<string, number>();
  for (const copy of copies) {
    const { promotedBy = '' } = copy;
    const at = trust.confirmedAt(copy);
    if (!heard.has(promotedBy)) since.set(promotedBy, Math.max(at, since.get(promotedBy) ?? 0));
  }
  return [...since]
    .map(([manager, at]) => ({ manager, since: at }))
    .toSorted((one, other) => one.since - other.since);
};

/** Tells an operator of it from half of the time on for which copies are good alone. */
export const lapseWarning = (
  { since }: UnheardManager,
  { now, aloneMs }: { readonly now: number; readonly aloneMs: number },
): string | undefined => {
  if (now - since < aloneMs / 2) return undefined;
  const [heard, until] = [since, since + aloneMs].map((at) => new Date(at).toISOString());
  return now >= since + aloneMs
    ? `promoted keys are refused until their manager is heard: it confirmed them last at ${heard}`
    : `promoted keys are refused from ${until} on: their manager confirmed them last at ${heard}`;
};
