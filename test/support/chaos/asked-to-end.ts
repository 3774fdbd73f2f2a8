import { type Case, isAcknowledged } from './case.ts';
import type { Moment } from './history.ts';
import type { Life } from './lives.ts';

/**
 * By how much sooner than activity and timeout say it may end: activity is noted every now and
 * then.
 */
const TOLERANCE_MS = 1_000;

/**
 * When it was first asked for, by anybody, that the sandbox ends, or when its idle timeout may end
 * it; Infinity: never.
 */
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

/** So long after its last activity that is known, and no sooner, its timeout may end it. */
const idleSince = ({ about, time }: Case, { id, claims, ended }: Life): Moment => {
  const [claim] = claims;
  if (!claim?.idleTimeoutMs) return Infinity;
  const endedBy = ended === undefined ? Infinity : time.latest(ended);
  const runs = (about.get(id) ?? []).flatMap((call) => {
    const { asked, invoked } = call;
    // A command that was answered ran for as long as it was to run.
    return asked.what === 'exec' && isAcknowledged(call) && invoked <= endedBy
      ? [invoked + (asked.seconds ?? 0) * 1_000]
      : [];
  });
  return Math.max(time.earliest(claim.revision), ...runs) + claim.idleTimeoutMs - TOLERANCE_MS;
};
