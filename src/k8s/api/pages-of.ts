import type { ApiClient } from './api-calls.ts';
import { listPageOf, type ListPage } from './api-objects.ts';
import { unlessAborted } from '../../lib/unless-aborted.ts';

export interface PageTerms {
  readonly query: { readonly limit: number; readonly labelSelector?: string };
  /** Bounds the reading of each page. */
  readonly deadlineMs: number;
  /** Ends it, also while a page is waited for: then it throws the signal's reason. */
  readonly signal: AbortSignal;
}

/** Reads a collection page by page; the next one is on its way while one is taken in. */
export async function* pagesOf(
  api: Pick<ApiClient, 'list'>,
  path: string,
  { query, deadlineMs, signal }: PageTerms,
): AsyncGenerator<ListPage> {
  const read = async (next?: string): Promise<ListPage> =>
    listPageOf(await api.list(path, { ...query, continue: next }, { deadlineMs }));
  for (let reading: Promise<ListPage> | undefined = read(); reading;) {
    const page: ListPage = await unlessAborted(signal, reading);
    reading = page.next === undefined ? undefined : read(page.next);
    reading?.catch(() => undefined); // heard of in its turn
    yield page;
  }
}
