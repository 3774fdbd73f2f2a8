import { askedToEnd } from '../asked-to-end.ts';
import { describeLife, type Case } from '../case.ts';

/** A claimed sandbox ends only by its owner, its timeout, or its pool's deletion by `force`. */
export const nothingTakenAway = (seen: Case): readonly string[] =>
  [...seen.instances.values()].flatMap((life) => {
    if (life.ended === undefined || askedToEnd(seen, life.id) <= seen.time.latest(life.ended))
      return [];
    return [`${life.id} ended, and nobody had asked for it: ${describeLife(seen, life)}`];
  });
