import { AsyncScope } from '../lib/async-scope.ts';

const requests = new AsyncScope<string>();

export const inRequest = (requestId: string, work: () => Promise<void>): Promise<void> =>
  requests.within(requestId, work);

/** Empty outside a request, or if the log does not write the lines. */
export const requestNow = (): { readonly requestId?: string } => {
  const requestId = requests.current();
  return requestId === undefined ? {} : { requestId };
};
