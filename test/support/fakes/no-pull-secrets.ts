import type { PullSecrets } from '../../../src/contracts/pull-secrets.ts';

/** Keeps nothing. */
export const noPullSecrets: PullSecrets = {
  keep: async () => undefined,
  forget: async () => undefined,
};
