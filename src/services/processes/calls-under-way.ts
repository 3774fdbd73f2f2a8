import { KeyedSemaphore } from '../../lib/keyed-semaphore.ts';
import { tooManyCalls } from '../../model/limit-refusals.ts';

/** Starts and inputs at once, of a sandbox and of a tenant: each may wait for 20 s and more. */
const MOST_CALLS = 128;
const MOST_CALLS_OF_TENANT = 512;

/** Carries out a call that may wait long, unless too many are under way. */
export type CallsUnderWay = <T>(
  key: { readonly tenant: string; readonly sandboxId: string },
  call: () => Promise<T>,
) => Promise<T>;

/** Rejects with TOO_MANY_COMMANDS, and then nothing was done. */
export const callsUnderWay = (): CallsUnderWay => {
  const ofSandboxes = new KeyedSemaphore(MOST_CALLS);
  const ofTenants = new KeyedSemaphore(MOST_CALLS_OF_TENANT);
  return async ({ tenant, sandboxId }, call) => {
    if (!ofSandboxes.acquire(sandboxId)) throw tooManyCalls('the sandbox has', MOST_CALLS);
    if (!ofTenants.acquire(tenant)) {
      ofSandboxes.release(sandboxId);
      throw tooManyCalls('you have', MOST_CALLS_OF_TENANT);
    }
    try {
      return await call();
    } finally {
      ofSandboxes.release(sandboxId);
      ofTenants.release(tenant);
    }
  };
};
