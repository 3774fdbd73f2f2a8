import type { Revision } from '../identifiers.ts';

/** Revisions are increasing decimal numbers without leading zeros. */
export const isNewer = (revision: Revision, than: Revision): boolean =>
  revision.length === than.length ? revision > than : revision.length > than.length;
