import { AsyncLocalStorage } from 'node:async_hooks';

/** Ends the work in which an exception was thrown that nobody caught. */
export type EndFaulty = (error: unknown) => void;

const scopes = new AsyncLocalStorage<EndFaulty>();

/**
 * Runs work whose streams belong to one request. An exception that its callbacks throw and nobody
 * catches is given to `end`, also after the work has returned; other requests go on.
 */
export const containFaults = <T>(end: EndFaulty, work: () => T): T => scopes.run(end, work);

/** Ends the work that threw. Returns false where it was thrown outside of any such work. */
export const endFaulty = (error: unknown): boolean => {
  const end = scopes.getStore();
  end?.(error);
  return end !== undefined;
};
