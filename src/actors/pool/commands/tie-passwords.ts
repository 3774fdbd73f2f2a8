import { type Clock, pause } from '../../../contracts/clock.ts';
import type { PullSecretOwner, PullSecrets } from '../../../contracts/pull-secrets.ts';
import type { RegistryCredentials } from '../../../model/pools/pool-source.ts';

const LONGEST_PAUSE_MS = 64_000;

/** Ties the passwords' life to their owner's record. Retries, because nothing else repeats this. */
export const tiePasswords = async (
  { pullSecrets, clock }: { readonly pullSecrets: PullSecrets; readonly clock: Clock },
  owner: PullSecretOwner,
  registries: readonly RegistryCredentials[],
): Promise<void> => {
  for (let pauseMs = 1_000; ; pauseMs *= 2) {
    try {
      return await pullSecrets.keep(owner, registries);
    } catch (error) {
      if (pauseMs > LONGEST_PAUSE_MS) throw error;
      await pause(clock, pauseMs);
    }
  }
};
