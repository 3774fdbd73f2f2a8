import { sandboxPermits } from '../../actors/sandbox/commands/sandbox-permits.ts';
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
  const begin = sandboxPermits({ sandbox: MOST_CALLS, tenant: MOST_CALLS_OF_TENANT }, tooManyCalls);
  return async ({ tenant, sandboxId }, call) => {
    const release = begin(sandboxId, tenant);
    try {
      return await call();
    } finally {
      release();
    }
  };
};
