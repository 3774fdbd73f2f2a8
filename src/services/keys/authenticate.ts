import { hash, randomBytes } from 'node:crypto';
import type { Clock } from '../../contracts/clock.ts';
import { isLasting, type ApiKeyRecord } from '../../model/api-key.ts';
import { parseApiKey } from '../../model/api-key-text.ts';
import { apiKeyRequired, invalidApiKey } from '../../model/refusals.ts';
import type { Caller } from '../../model/tenant.ts';
import type { ApiKeyMirror } from './api-keys.ts';
import { secretMatches } from './mint-api-key.ts';
import type { KeyOperations } from './key-operations.ts';

export interface AuthenticateDeps {
  readonly apiKeys: ApiKeyMirror;
  readonly pepper: Buffer;
  readonly clock: Clock;
}

/** Keys that were found good lately, and need not be taken apart again. */
const MOST_REMEMBERED = 10_000;

/** The two ways to know a caller. */
export const authentication = (
  deps: AuthenticateDeps,
): Pick<KeyOperations, 'authenticate' | 'authenticateAfresh'> => {
  const known = authenticate(deps);
  return {
    authenticate: known,
    authenticateAfresh: async (key) => {
      const text = key === undefined ? undefined : parseApiKey(key);
      // One that is known and not good gets no better by reading it.
      if (text && !deps.apiKeys.find(text.keyId)) await deps.apiKeys.lookUp(text.keyId);
      return known(key);
    },
  };
};

/**
 * Returns the caller behind a `SERVICE-API-KEY` header's value. One refusal for every key that is
 * not good: malformed, unknown, wrong or expired; 503 for a copy of a promoted key that may be out
 * of date. A bad checksum is refused before anything is looked up. Good keys are remembered by a
 * hash that only this process can make, so that a caller of many requests costs one hash each.
 */
export const authenticate = (deps: AuthenticateDeps) => {
  const salt = randomBytes(32).toString('hex');
  const good = new Map<string, { readonly record: ApiKeyRecord; readonly caller: Caller }>();
  return (key: string | undefined): Caller => {
    if (!key) throw apiKeyRequired();
    const mark = hash('sha256', salt + key.slice(0, LONGEST_KEY), 'base64');
    const known = good.get(mark);
    if (
      known &&
      deps.apiKeys.find(known.record.keyId) === known.record &&
      known.record.expiresAt > deps.clock.now()
    ) {
      deps.apiKeys.check(known.record);
      return known.caller;
    }
    const record = check(deps, key);
    const caller = callerOf(record);
    if (good.size >= MOST_REMEMBERED) good.clear();
    good.set(mark, { record, caller });
    return caller;
  };
};

/** Returns who asks by a key that is good. */
export const callerOf = (record: ApiKeyRecord): Caller => {
  const { keyId, namespace, team, user, role, expiresAt, gated, makers } = record;
  return {
    keyId,
    namespace,
    team,
    user,
    role,
    ...(isLasting(record) ? { keyEndsAt: expiresAt } : {}),
    ...(gated ? { gated } : {}),
    ...(makers ? { makers } : {}),
  };
};

/** Beyond any key's length, so that what is cut is no key. */
const LONGEST_KEY = 256;

const check = ({ apiKeys, pepper, clock }: AuthenticateDeps, key: string): ApiKeyRecord => {
  const text = parseApiKey(key);
  if (!text) throw invalidApiKey();
  const record = apiKeys.find(text.keyId);
  if (!record || !secretMatches(text.secret, record, pepper)) throw invalidApiKey();
  if (record.expiresAt <= clock.now()) throw invalidApiKey();
  apiKeys.check(record);
  return record;
};
