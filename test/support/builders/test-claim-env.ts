import { ClaimEnv } from '../../../src/actors/sandbox/claim-env.ts';

/** Other installations can't open what it sealed. */
export const testClaimEnv = new ClaimEnv(Buffer.alloc(32, 9));
