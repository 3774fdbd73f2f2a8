import type { Revision } from '../identifiers.ts';

/**
 * Whether a revision of a record is newer than another of the same record: revisions are increasing
 * decimal numbers without leading zeros.
 */
export const isNewer = (revision: Revision, than: Revision): boolean =>
  revision.length === than.length ? revision > than : revision.length > than.length;
