import { type Case, isAcknowledged } from './case.ts';
import type { Moment } from './history.ts';
import type { Life } from './lives.ts';

/** Activity is noted only at intervals, so a sandbox may end this much early. */
const TOLERANCE_MS = 1_000;

/** Infinity if nothing may end it. */
export const askedToEnd = (seen: Case, id: string): Moment => {
  const life = seen.instances.get(id);
  const deletes = seen.deletes.get(id) ?? [];
  const byHand = seen.disturbances
    .filter(({ removed }) => removed.includes(id))
    .map(({ from }) => from);
  return Math.min(
    Infinity,
    ...deletes,
    ...byHand,
    ...(life ? [seen.forced.get(life.poolUid) ?? Infinity, idleSince(seen, life)] : []),
  );
};

/** By its last known activity. */
const idleSince = ({ about, time }: Case, { id, claims, ended }: Life): Moment => {
  const [claim] = claims;
  if (!claim?.idleTimeoutMs) return Infinity;
  const endedBy = ended === undefined ? Infinity : time.latest(ended);
  const runs = (about.get(id) ?? []).flatMap((call) => {
    const { asked, invoked } = call;
    // An answered command ran for its full time.
    return asked.what === 'exec' && isAcknowledged(call) && invoked <= endedBy
      ? [invoked + (asked.seconds ?? 0) * 1_000]
      : [];
  });
  return Math.max(time.earliest(claim.revision), ...runs) + claim.idleTimeoutMs - TOLERANCE_MS;
};
