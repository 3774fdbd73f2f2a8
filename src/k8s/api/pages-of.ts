import type { ApiClient } from './api-calls.ts';
import { listPageOf, type ListPage } from './api-objects.ts';
import { unlessAborted } from '../../lib/unless-aborted.ts';

export interface PageTerms {
  readonly query: { readonly limit: number; readonly labelSelector?: string };
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
}

/** Fetches the next page while one is processed. */
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
    reading?.catch(() => undefined); // reported when its turn comes
    yield page;
  }
}
