import { ClaimEnv } from '../../../src/actors/sandbox/claim-env.ts';

/** Of one installation; others' open nothing that it sealed. */
export const testClaimEnv = new ClaimEnv(Buffer.alloc(32, 9));
