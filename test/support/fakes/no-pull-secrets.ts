import type { PullSecrets } from '../../../src/contracts/pull-secrets.ts';

export const noPullSecrets: PullSecrets = {
  keep: async () => undefined,
  forget: async () => undefined,
};
