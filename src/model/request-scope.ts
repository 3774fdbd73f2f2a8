import { AsyncLocalStorage } from 'node:async_hooks';

const ids = new AsyncLocalStorage<string>();

/** Has what is done in the course of a request know its id, through all that it waits for. */
export const inRequest = <T>(requestId: string, work: () => T): T => ids.run(requestId, work);

/** For a line of the log about what a request brought about; empty outside of one, and where the log is not so detailed. */
export const requestNow = (): { readonly requestId?: string } => {
  const requestId = ids.getStore();
  return requestId === undefined ? {} : { requestId };
};
