import type { Grants } from '../../../src/contracts/grants.ts';

/** Without quotas. */
export const grantsAll: Grants<unknown> = {
  ask: async () => ({
    permitted: () => true,
    landed: async () => undefined,
    failed: async () => undefined,
  }),
};
