import { AsyncLocalStorage } from 'node:async_hooks';

const scopes = new AsyncLocalStorage<{ requestId: string | undefined }>();

/** Has what is done in the course of a request know its id, through all that it waits for, and until it is over: what it leaves behind may serve others. */
export const inRequest = async (requestId: string, work: () => Promise<void>): Promise<void> => {
  const scope: { requestId: string | undefined } = { requestId };
  try {
    await scopes.run(scope, work);
  } finally {
    scope.requestId = undefined;
  }
};

/** For a line of the log about what a request brought about; empty outside of one, and where the log is not so detailed. */
export const requestNow = (): { readonly requestId?: string } => {
  const requestId = scopes.getStore()?.requestId;
  return requestId === undefined ? {} : { requestId };
};
