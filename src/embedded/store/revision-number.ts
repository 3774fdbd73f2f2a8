import type { Revision } from '../../model/identifiers.ts';

/** A revision as SQLite counts them; one that isn't ours matches nothing. */
export const revisionNumber = (revision: Revision): number =>
  /^\d{1,15}$/.test(revision) ? Number(revision) : -1;
