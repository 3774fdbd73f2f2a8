import { createHash, createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import { type ApiKeyText, formatApiKey, newApiKeyText } from '../../model/api-key-text.ts';
import type { ApiKeyRecord } from '../../model/api-key.ts';
import type { Role, Tenant } from '../../model/tenant.ts';
import { seal, unseal } from './sealed-box.ts';

export interface ApiKeySpec {
  readonly tenant: Tenant;
  readonly role: Role;
  readonly shortName: string;
  readonly description: string;
  readonly issuedAt: number;
  readonly expiresAt: number;
  /** Absent if the daemon makes it. */
  readonly createdBy?: string;
  readonly gated?: true;
  readonly makers?: readonly string[];
}

export interface MintedApiKey {
  /** Does not reveal the secret. */
  readonly record: Omit<ApiKeyRecord, 'revision'>;
  /** To be shown once. */
  readonly apiKey: string;
}

/** One seed always gives the same text, but does not reveal it without the pepper. */
export const seededApiKeyText = (seed: Buffer, pepper: Buffer): ApiKeyText => {
  let drawn = 0;
  return newApiKeyText(
    (count) =>
      new Uint8Array(hkdfSync('sha256', seed, pepper, `sandpool API key ${drawn++}`, count)),
  );
};

/** 256 random bits. Stores nothing. */
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

export const keptOf = (
  text: ApiKeyText,
  whose: Whose,
  pepper: Buffer,
): Pick<ApiKeyRecord, 'hash' | 'verifier'> => ({
  hash: hashOf(text.secret, pepper).toString('hex'),
  verifier: seal(verifierKey(pepper), verifierPurpose(whose), verifierOf(text)),
});

/**
 * Hash of 256 random bits, which can't be reversed. A cluster without the pepper checks the key
 * against it.
 */
const verifierOf = ({ keyId, secret }: ApiKeyText): Buffer =>
  createHash('sha256').update(`sandpool promoted key 1\n${keyId}\n${secret}`).digest();

const verifierKey = (pepper: Buffer): Buffer =>
  Buffer.from(hkdfSync('sha256', pepper, '', 'sandpool verifier of a key', 32));

/** The verifier does not open after a change of the key's owner or rights. */
const verifierPurpose = ({ keyId, team, user, role, gated }: Whose): string =>
  JSON.stringify([keyId, team, user, role, gated === true]);

/**
 * For other clusters, hex. Undefined if an older version stored none, or if the record was altered.
 */
export const openedVerifier = (record: ApiKeyRecord, pepper: Buffer): string | undefined =>
  record.verifier === undefined
    ? undefined
    : unseal(verifierKey(pepper), verifierPurpose(record), record.verifier)?.toString('hex');

/** Stored on another cluster, under that cluster's pepper. */
export const promotedHashOf = (verifier: string, pepper: Buffer): string =>
  hashOf(verifier, pepper).toString('hex');

/** Compares in constant time. */
export const secretMatches = (secret: string, record: ApiKeyRecord, pepper: Buffer): boolean => {
  const { keyId, promotedBy } = record;
  const expected = Buffer.from(record.hash, 'hex');
  const actual = hashOf(
    promotedBy === undefined ? secret : verifierOf({ keyId, secret }).toString('hex'),
    pepper,
  );
  return expected.length === actual.length && timingSafeEqual(expected, actual);
};

const hashOf = (secret: string, pepper: Buffer): Buffer =>
  createHmac('sha256', pepper).update(secret).digest();
