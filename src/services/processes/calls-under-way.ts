import { sandboxPermits } from '../../actors/sandbox/commands/sandbox-permits.ts';
import { tooManyCalls } from '../../model/limit-refusals.ts';

const MOST_CALLS = 128;
const MOST_CALLS_OF_TENANT = 512;

export type CallsUnderWay = <T>(
  key: { readonly tenant: string; readonly sandboxId: string },
  call: () => Promise<T>,
) => Promise<T>;

/** Rejects with TOO_MANY_COMMANDS before anything is done. */
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
