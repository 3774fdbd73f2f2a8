import type { Clock } from '../contracts/clock.ts';
import { parseApiKey } from '../model/api-key-text.ts';
import { apiKeyRequired, invalidApiKey } from '../model/refusals.ts';
import type { Caller } from '../model/tenant.ts';
import { secretMatches, type ApiKeyMirror } from './api-keys.ts';

export interface AuthenticateDeps {
  readonly apiKeys: ApiKeyMirror;
  readonly pepper: Buffer;
  readonly clock: Clock;
}

/**
 * The caller behind a `SERVICE-API-KEY` header's value. One refusal for every key that is not good: malformed, unknown,
 * wrong or expired. A bad checksum is refused before anything is looked up.
 */
export const authenticate = (deps: AuthenticateDeps) => (key: string | undefined): Caller => {
  if (!key) throw apiKeyRequired();
  const text = parseApiKey(key);
  if (!text) throw invalidApiKey();
  const record = deps.apiKeys.find(text.keyId);
  if (!record || !secretMatches(text.secret, record, deps.pepper)) throw invalidApiKey();
  if (record.expiresAt <= deps.clock.now()) throw invalidApiKey();
  return { keyId: record.keyId, namespace: record.namespace, team: record.team, user: record.user, role: record.role };
};
