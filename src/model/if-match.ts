import type { Revision } from './identifiers.ts';
import { preconditionFailed } from './refusals.ts';

/** Revisions to which a conditional change applies; `*` for any. */
export type IfMatch = '*' | ReadonlySet<Revision>;

/** Refuses if the change is for another revision. Call it again right before the write. */
export const requireMatch = (ifMatch: IfMatch | undefined, revision: Revision): void => {
  if (ifMatch !== undefined && ifMatch !== '*' && !ifMatch.has(revision))
    throw preconditionFailed();
};
