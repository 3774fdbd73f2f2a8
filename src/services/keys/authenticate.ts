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

/** Recently verified keys that need no parsing. */
const MOST_REMEMBERED = 10_000;

export const authentication = (
  deps: AuthenticateDeps,
): Pick<KeyOperations, 'authenticate' | 'authenticateAfresh'> => {
  const known = authenticate(deps);
  return {
    authenticate: known,
    authenticateAfresh: async (key) => {
      const text = key === undefined ? undefined : parseApiKey(key);
      // Reading the store again does not help a known, invalid key.
      if (text && !deps.apiKeys.find(text.keyId)) await deps.apiKeys.lookUp(text.keyId);
      return known(key);
    },
  };
};

/**
 * Refuses malformed, unknown, wrong and expired keys alike, and with 503 a copy of a promoted key
 * that may be outdated. Refuses a bad checksum before any lookup. Remembers valid keys by a hash
 * that only this process can make, so a frequent caller costs one hash per request.
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

/** Longer than any key, so a truncated text is never a key. */
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
