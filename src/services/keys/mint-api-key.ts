import { createHash, createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import { type ApiKeyText, formatApiKey, newApiKeyText } from '../../model/api-key-text.ts';
import type { ApiKeyRecord } from '../../model/api-key.ts';
import type { Role, Tenant } from '../../model/tenant.ts';
import { seal, unseal } from './sealed-box.ts';

/** Describes what a new key is for. Times in milliseconds since the epoch. */
export interface ApiKeySpec {
  readonly tenant: Tenant;
  readonly role: Role;
  readonly shortName: string;
  readonly description: string;
  readonly issuedAt: number;
  readonly expiresAt: number;
  /** The key that makes it; absent: the daemon does. */
  readonly createdBy?: string;
  readonly gated?: true;
  readonly makers?: readonly string[];
}

export interface MintedApiKey {
  /** To be stored; holds nothing that the secret could be told from. */
  readonly record: Omit<ApiKeyRecord, 'revision'>;
  /** To be shown once. */
  readonly apiKey: string;
}

/** Makes a key's text from a seed, the same each time; who knows the seed alone can not tell it. */
export const seededApiKeyText = (seed: Buffer, pepper: Buffer): ApiKeyText => {
  let drawn = 0;
  return newApiKeyText(
    (count) =>
      new Uint8Array(hkdfSync('sha256', seed, pepper, `sandpool API key ${drawn++}`, count)),
  );
};

/** A new key of 256 random bits. Nothing is stored. */
export const mintApiKey = (
  spec: ApiKeySpec,
  pepper: Buffer,
  text = newApiKeyText(randomBytes),
): MintedApiKey => {
  const { tenant, ...rest } = spec;
  const record = { ...rest, ...tenant, keyId: text.keyId };
  return { apiKey: formatApiKey(text), record: { ...record, ...keptOf(text, record, pepper) } };
};

type Whose = Pick<ApiKeyRecord, 'keyId' | 'team' | 'user' | 'role' | 'gated'>;

/** Makes what is kept of a new key's secret. */
export const keptOf = (
  text: ApiKeyText,
  whose: Whose,
  pepper: Buffer,
): Pick<ApiKeyRecord, 'hash' | 'verifier'> => ({
  hash: hashOf(text.secret, pepper).toString('hex'),
  verifier: seal(verifierKey(pepper), verifierPurpose(whose), verifierOf(text)),
});

/**
 * Makes what a key can be checked by where its cluster's pepper is not known: a hash of its 256
 * random bits, which nobody finds them by.
 */
const verifierOf = ({ keyId, secret }: ApiKeyText): Buffer =>
  createHash('sha256').update(`sandpool promoted key 1\n${keyId}\n${secret}`).digest();

const verifierKey = (pepper: Buffer): Buffer =>
  Buffer.from(hkdfSync('sha256', pepper, '', 'sandpool verifier of a key', 32));

/** A record that was changed to be somebody else's, or more, has none. */
const verifierPurpose = ({ keyId, team, user, role, gated }: Whose): string =>
  JSON.stringify([keyId, team, user, role, gated === true]);

/**
 * Opens what other clusters can check a key by, hex; undefined where it was made by a version that
 * kept none, or the record is not as it was made.
 */
export const openedVerifier = (record: ApiKeyRecord, pepper: Buffer): string | undefined =>
  record.verifier === undefined
    ? undefined
    : unseal(verifierKey(pepper), verifierPurpose(record), record.verifier)?.toString('hex');

/** The hash that a promoted key is kept by on another cluster, under the pepper of that one. */
export const promotedHashOf = (verifier: string, pepper: Buffer): string =>
  hashOf(verifier, pepper).toString('hex');

/** Whether the secret is the record's, in a time that tells nothing of either. */
export const secretMatches = (secret: string, record: ApiKeyRecord, pepper: Buffer): boolean => {
  const { keyId, promotedBy } = record;
  const expected = Buffer.from(record.hash, 'hex');
  const actual = hashOf(
    promotedBy === undefined ? secret : verifierOf({ keyId, secret }).toString('hex'),
    pepper,
  );
  return expected.length === actual.length && timingSafeEqual(expected, actual);
};

/** Hashes a secret under the pepper. */
const hashOf = (secret: string, pepper: Buffer): Buffer =>
  createHmac('sha256', pepper).update(secret).digest();
