import { AsyncLocalStorage } from 'node:async_hooks';

export type EndFaulty = (error: unknown) => void;

const scopes = new AsyncLocalStorage<EndFaulty>();

/**
 * An uncaught exception of the work's callbacks goes to `end`, also after its return; other
 * requests continue.
 */
export const containFaults = <T>(end: EndFaulty, work: () => T): T => scopes.run(end, work);

/** False if the exception came from outside such work. */
export const endFaulty = (error: unknown): boolean => {
  const end = scopes.getStore();
  end?.(error);
  return end !== undefined;
};
