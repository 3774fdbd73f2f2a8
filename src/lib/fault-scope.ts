import { AsyncLocalStorage } from 'node:async_hooks';

/** Ends the work that threw an uncaught exception. */
export type EndFaulty = (error: unknown) => void;

const scopes = new AsyncLocalStorage<EndFaulty>();

/**
 * Runs work whose streams belong to one request. An uncaught exception of its callbacks goes to
 * `end`, also after the work has returned; other requests continue.
 */
export const containFaults = <T>(end: EndFaulty, work: () => T): T => scopes.run(end, work);

/** Ends the work that threw. Returns false if the exception came from outside such work. */
export const endFaulty = (error: unknown): boolean => {
  const end = scopes.getStore();
  end?.(error);
  return end !== undefined;
};
