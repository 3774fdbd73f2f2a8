import type { ApiClient } from './api-client.ts';
import { identityOf, listPageOf } from './api-objects.ts';

/** What stands in the store at one moment. */
export interface VersionsNow {
  /** Of the whole store, at that moment. */
  readonly revision: string;
  /** The revision of each object, by its key. */
  readonly versions: ReadonlyMap<string, string>;
}

const PAGE = 500;

/** Lists a collection uncached, nothing but the metadata of its objects. */
export const versionsNow = async (api: Pick<ApiClient, 'list'>, { path, labelSelector }: { readonly path: string; readonly labelSelector?: string }, deadlineMs: number): Promise<VersionsNow> => {
  const versions = new Map<string, string>();
  const until = performance.now() + deadlineMs;
  const query = { limit: PAGE, ...(labelSelector === undefined ? {} : { labelSelector }) };
  for (let next: string | undefined; ;) {
    const page = listPageOf(await api.list(path, { ...query, ...(next === undefined ? {} : { continue: next }) }, { deadlineMs: Math.max(1, until - performance.now()), metadataOnly: true }));
    for (const object of page.items) {
      const { key, resourceVersion } = identityOf(object);
      versions.set(key, resourceVersion);
    }
    next = page.next;
    if (next === undefined) return { revision: page.resourceVersion, versions };
  }
};
