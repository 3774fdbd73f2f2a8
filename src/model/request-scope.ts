import { AsyncScope } from '../lib/async-scope.ts';

const requests = new AsyncScope<string>();

/** Makes the request's id available to all work within the request. */
export const inRequest = (requestId: string, work: () => Promise<void>): Promise<void> =>
  requests.within(requestId, work);

/**
 * For log lines about effects of a request; empty outside a request, or if the log does not write
 * them.
 */
export const requestNow = (): { readonly requestId?: string } => {
  const requestId = requests.current();
  return requestId === undefined ? {} : { requestId };
};
