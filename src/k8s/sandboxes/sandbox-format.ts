import type { InstanceRecord } from '../../model/sandbox.ts';

/**
 * Objects of a higher format were written by a later version: a replica that meets one, under a
 * seal, keeps its hands off.
 */
export const FORMAT = 1;

/**
 * A `Sandbox` that says more than an earlier version would keep when it writes the record, or would
 * heed: its claim has metadata, variables for what is run in it, or a moment at which it ends, or
 * was given back; or it was launched for that claim.
 */
const DESCRIBED_FORMAT = 2;

/**
 * A `Sandbox` that waits for the one claim that it was launched for: a version that knows formats 1
 * and 2 alone would take it for one that is kept ready, and hand it out to somebody else. Once it
 * is claimed it is a sandbox as all are.
 */
const RESERVED_FORMAT = 3;

/** The highest format that this version reads and writes. */
export const LATEST_FORMAT = RESERVED_FORMAT;

/** Returns the lowest format that says all of the record. */
export const formatOf = (record: InstanceRecord): number => {
  if (record.claimBy !== undefined && !record.claim) return RESERVED_FORMAT;
  return saysMore(record) ? DESCRIBED_FORMAT : FORMAT;
};

/** Says whether records of the format are under a seal: see Seals. */
export const isSealed = (format: number): boolean => format > FORMAT;

const saysMore = ({ claimBy, claim, end }: InstanceRecord): boolean =>
  claimBy !== undefined ||
  claim?.metadata !== undefined ||
  claim?.sealedEnv !== undefined ||
  claim?.endsAt !== undefined ||
  end?.reason === 'claim-failed';
