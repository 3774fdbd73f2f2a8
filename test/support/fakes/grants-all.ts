import type { Grants } from '../../../src/contracts/grants.ts';

/** As if nobody had a quota. */
export const grantsAll: Grants<unknown> = {
  ask: async () => ({
    permitted: () => true,
    landed: async () => undefined,
    failed: async () => undefined,
  }),
};
