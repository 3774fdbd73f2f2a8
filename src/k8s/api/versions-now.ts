import type { Mirror } from '../../model/mirror/mirror.ts';
import type { ApiClient } from './api-calls.ts';
import { identityOf, listPageOf, resourceVersionOf } from './api-objects.ts';

/** The revisions of what stands in the store at one moment. */
export interface VersionsNow {
  /** The API server's resourceVersion for the whole collection, at that moment. */
  readonly revision: string;
  /** The revision of each object, by its key. */
  readonly versions: ReadonlyMap<string, string>;
}

const PAGE = 500;

export interface Collection {
  readonly path: string;
  readonly labelSelector?: string;
}

/** Lists a collection uncached, nothing but the metadata of its objects. */
export const versionsNow = async (
  api: Pick<ApiClient, 'list'>,
  { path, labelSelector }: Collection,
  deadlineMs: number,
): Promise<VersionsNow> => {
  const versions = new Map<string, string>();
  const until = performance.now() + deadlineMs;
  const query = { limit: PAGE, labelSelector };
  for (let next: string | undefined; ;) {
    const page = listPageOf(
      await api.list(
        path,
        { ...query, continue: next },
        { deadlineMs: Math.max(1, until - performance.now()), metadataOnly: true },
      ),
    );
    for (const object of page.items) {
      const { key, resourceVersion } = identityOf(object);
      versions.set(key, resourceVersion);
    }
    next = page.next;
    if (next === undefined) return { revision: page.resourceVersion, versions };
  }
};

/** Whether the mirror shows of the object what stood then, or something newer. */
export const isShown = <T>(
  mirror: Mirror<T>,
  { revision, versions }: VersionsNow,
  key: string,
): boolean => {
  const [known, listed] = [mirror.revisionOf(key), versions.get(key)];
  if (listed === undefined) return known === undefined || isOlder(revision, known);
  return known !== undefined && !isOlder(known, listed);
};

/** The result of comparing a mirror with the store that it mirrors. */
export interface MirrorCheck {
  /** Why the store must be an older one than it was. */
  readonly wentBack?: string;
  /** The mirror lacks what a watch from its revision would not tell. */
  readonly differs?: boolean;
}

const CHECK_MS = 15_000;

/**
 * Compares a mirror with the store by a few uncached reads. A watch from a revision that the store
 * has not reached, since it was restored from an older copy, tells nothing, and not even that; once
 * the store has passed the revision it tells on, and what was written in between is missed. `by`:
 * with `objects` that is found too.
 */
export const checked = async <T>(
  mirror: Mirror<T>,
  store: Collection & { readonly api: Pick<ApiClient, 'list'> },
  by: 'objects' | 'revision',
): Promise<MirrorCheck> => {
  const { api } = store;
  const before = mirror.revision;
  if (by === 'revision') {
    const revision = resourceVersionOf(
      await api.list(store.path, { limit: 1 }, { metadataOnly: true }),
    );
    return isOlder(revision, before)
      ? { wentBack: `it went back from revision ${before} to ${revision}` }
      : {};
  }
  const { revision, versions } = await versionsNow(api, store, CHECK_MS);
  if (isOlder(revision, before))
    return { wentBack: `it went back from revision ${before} to ${revision}` };
  let differs = false;
  for (const key of new Set([...versions.keys(), ...mirror.keys()])) {
    const [known, stands = before] = [mirror.revisionOf(key), versions.get(key)];
    if (
      known !== undefined &&
      versions.has(key) &&
      isOlder(stands, known) &&
      !isOlder(before, known)
    )
      return { wentBack: `${key} is of revision ${stands}, and was of ${known}` };
    differs ||= known !== versions.get(key) && !isOlder(before, stands);
  }
  return { differs };
};

/** Whether a revision is from before another. */
export const isOlder = (revision: string, than: string): boolean =>
  compareVersions(revision, than) < 0;

/**
 * Resource versions are decimal numbers without leading zeros, of any length, and of one API server
 * comparable (Kubernetes 1.35: "Resource Version Semantics"). Below zero where `a` is older, above
 * where it is newer.
 */
const compareVersions = (a: string, b: string): number =>
  a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
