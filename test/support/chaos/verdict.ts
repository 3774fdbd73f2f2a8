import { caseOf } from './case.ts';
import type { Evidence, Violation } from './history.ts';
import { deleteIsFinal } from './promises/delete-is-final.ts';
import { noFalseRefusal } from './promises/no-false-refusal.ts';
import { noInternalError } from './promises/no-internal-error.ts';
import { nothingLost } from './promises/nothing-lost.ts';
import { nothingTaken } from './promises/nothing-taken.ts';
import { nothingTakenAway } from './promises/nothing-taken-away.ts';
import { oneEffectPerGrant } from './promises/one-effect-per-grant.ts';
import { oneEffectPerKey } from './promises/one-effect-per-key.ts';
import { oneOwner } from './promises/one-owner.ts';
import { poolsFull } from './promises/pools-full.ts';
import { quotaEqualsRecords } from './promises/quota-equals-records.ts';
import { quotaKept } from './promises/quota-kept.ts';
import { shardsLed } from './promises/shards-led.ts';
import { surplusTrimmed } from './promises/surplus-trimmed.ts';
import { trueTime } from './promises/true-time.ts';

const PROMISES = {
  'one owner': oneOwner,
  'nothing lost': nothingLost,
  'nothing taken away': nothingTakenAway,
  'no false refusal': noFalseRefusal,
  'quota kept': quotaKept,
  'a delete is final': deleteIsFinal,
  'one effect per key': oneEffectPerKey,
  'one effect per grant': oneEffectPerGrant,
  'surplus trimmed': surplusTrimmed,
  'true time': trueTime,
  'no internal error': noInternalError,
  'each shard is led': shardsLed,
  'each pool is full': poolsFull,
  'nothing taken that no claim holds': nothingTaken,
  'quota equals the records': quotaEqualsRecords,
} as const;

/** Only what the evidence proves: overlapping bounds of time prove nothing. */
export const violationsOf = (evidence: Evidence): readonly Violation[] => {
  const seen = caseOf(evidence);
  return Object.entries(PROMISES).flatMap(([promise, look]) =>
    look(seen).map((what): Violation => ({ promise, what })),
  );
};
