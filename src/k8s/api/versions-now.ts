import type { Mirror } from '../../model/mirror/mirror.ts';
import type { ApiClient } from './api-calls.ts';
import { identityOf, listPageOf, resourceVersionOf } from './api-objects.ts';

export interface VersionsNow {
  readonly revision: string;
  readonly versions: ReadonlyMap<string, string>;
}

const PAGE = 500;

export interface Collection {
  readonly path: string;
  readonly labelSelector?: string;
}

/** Uncached, as metadata only. */
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

export const isShown = <T>(
  mirror: Mirror<T>,
  { revision, versions }: VersionsNow,
  key: string,
): boolean => {
  const [known, listed] = [mirror.revisionOf(key), versions.get(key)];
  if (listed === undefined) return known === undefined || isOlder(revision, known);
  return known !== undefined && !isOlder(known, listed);
};

export interface MirrorCheck {
  readonly wentBack?: string;
  /** The mirror lacks changes that a watch from its revision would not report. */
  readonly differs?: boolean;
}

const CHECK_MS = 15_000;

/**
 * Compares a mirror with the store by a few uncached reads. After a restore from an older copy, a
 * watch from a later revision reports nothing, and then misses the changes in between; `by:
 * objects` detects this too.
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
      return { wentBack: `${key} has revision ${stands}, and had ${known}` };
    differs ||= known !== versions.get(key) && !isOlder(before, stands);
  }
  return { differs };
};

export const isOlder = (revision: string, than: string): boolean =>
  compareVersions(revision, than) < 0;

/**
 * Decimal numbers of any length without leading zeros, comparable within one API server (Kubernetes
 * 1.35: "Resource Version Semantics").
 */
const compareVersions = (a: string, b: string): number =>
  a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
