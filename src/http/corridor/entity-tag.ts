import { createHash } from 'node:crypto';
import type { Revision } from '../../model/identifiers.ts';
import type { IfMatch } from '../../model/if-match.ts';

/**
 * They change without a new revision or differ between replicas. No string can match, since JSON
 * escapes quotes.
 */
const RUNNING = /"durationSeconds":\d+|"(?:lastSnapshotTime|idleExpiresAt)":"[^"]*"/g;

/** `"<revision>-<hash of the view>"` (RFC 9110, 8.8.3). */
export const entityTag = (revision: Revision, text: string): string => {
  const hash = createHash('sha256').update(text.replace(RUNNING, '')).digest('hex');
  return `"${revision}-${hash.slice(0, 16)}"`;
};

/** Compares weakly; `*` matches too. */
export const namesView = (ifNoneMatch: string | undefined, tag: string): boolean =>
  ifNoneMatch !== undefined &&
  (ifNoneMatch.trim() === '*' ||
    tagsOf(ifNoneMatch).some((each) => each.replace(/^W\//, '') === tag));

/** Ignores weak and foreign tags. */
export const revisionsOf = (ifMatch: string | undefined): IfMatch | undefined => {
  if (ifMatch === undefined) return undefined;
  if (ifMatch.trim() === '*') return '*';
  return new Set(tagsOf(ifMatch).flatMap((tag) => /^"(.+)-[0-9a-f]{16}"$/.exec(tag)?.[1] ?? []));
};

const tagsOf = (header: string): readonly string[] => header.match(/(?:W\/)?"[^"]*"/g) ?? [];
