import { askedToEnd, describeLife, type Case } from '../case.ts';

/** A claimed sandbox ends because somebody asked for it, and for nothing else: no clock, no flush, no fault. */
export const nothingTakenAway = (seen: Case): readonly string[] => [...seen.instances.values()].flatMap((life) => {
  if (life.ended === undefined || askedToEnd(seen, life.id) <= seen.time.latest(life.ended)) return [];
  return [`${life.id} ended, and nobody had asked for it: ${describeLife(seen, life)}`];
});
