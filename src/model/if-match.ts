import type { Revision } from './identifiers.ts';
import { preconditionFailed } from './refusals.ts';

/** The revisions that a conditional change is meant for; `*`: any. */
export type IfMatch = '*' | ReadonlySet<Revision>;

/**
 * Refuses where the change is meant for another revision. To be asked again right before the write.
 */
export const requireMatch = (ifMatch: IfMatch | undefined, revision: Revision): void => {
  if (ifMatch !== undefined && ifMatch !== '*' && !ifMatch.has(revision))
    throw preconditionFailed();
};
