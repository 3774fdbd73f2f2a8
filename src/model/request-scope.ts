import { AsyncScope } from '../lib/async-scope.ts';

const requests = new AsyncScope<string>();

/** Has what is done in the course of a request know its id. */
export const inRequest = (requestId: string, work: () => Promise<void>): Promise<void> =>
  requests.within(requestId, work);

/**
 * For a line of the log about what a request brought about; empty outside of one, and where the log
 * is not so detailed.
 */
export const requestNow = (): { readonly requestId?: string } => {
  const requestId = requests.current();
  return requestId === undefined ? {} : { requestId };
};
