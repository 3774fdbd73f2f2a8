import { hkdfSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../contracts/clock.ts';
import { RecordExists } from '../contracts/record-store.ts';
import { RecordConflict } from '../contracts/sandbox-driver.ts';
import type { ApiKeyRecord } from '../model/api-key.ts';
import { parseApiKey, type ApiKeyText } from '../model/api-key-text.ts';
import type { Tenant } from '../model/tenant.ts';
import type { ApiKeyMirror } from '../services/keys/api-keys.ts';
import { keptOf, secretMatches } from '../services/keys/mint-api-key.ts';

export interface SharedSecrets {
  readonly pepper: Buffer;
  readonly adminKey: ApiKeyText;
}

/** Throws with advice; the message never quotes the content. */
export const readSharedSecrets = (folder: string): SharedSecrets => {
  const pepper = Buffer.from(textOf(join(folder, 'pepper')), 'hex');
  if (pepper.length !== 32)
    throw new Error(
      `${join(folder, 'pepper')} must contain 64 hexadecimal digits, such as "openssl rand ` +
        '-hex 32" prints',
    );
  const adminKey = parseApiKey(textOf(join(folder, 'admin.key')));
  if (!adminKey)
    throw new Error(
      `${join(folder, 'admin.key')} must contain an API key, such as "sandpool keys mint" ` +
        'prints',
    );
  return { pepper, adminKey };
};

/** The key has no other use, so no hash of an API key's secret is a valid seal. */
export const sealKeyOf = ({ pepper }: Pick<SharedSecrets, 'pepper'>): Buffer =>
  Buffer.from(hkdfSync('sha256', pepper, '', 'sandpool seals of records', 32));

export interface AdminKeyDeps {
  readonly apiKeys: ApiKeyMirror;
  readonly secrets: SharedSecrets;
  readonly clock: Clock;
  /** From now, in ms. */
  readonly lifetimeMs: number;
  readonly tenant: Tenant;
}

/** Several replicas may do this at once. Throws if another key has its id. */
export const ensureAdminKey = async ({
  apiKeys,
  secrets: { pepper, adminKey },
  clock,
  lifetimeMs,
  tenant,
}: AdminKeyDeps): Promise<void> => {
  const { keyId, secret } = adminKey;
  const now = clock.now();
  const expiresAt = now + lifetimeMs;
  const known = apiKeys.find(keyId);
  if (known) {
    if (known.role !== 'admin' || !secretMatches(secret, known, pepper))
      throw new Error(
        'admin.key is not the key with its id, or the pepper has changed since the key was ' +
          'created',
      );
    if (known.expiresAt - now < lifetimeMs / 2)
      await apiKeys.renew({ ...known, expiresAt }).catch(ignoreLostRace);
    return;
  }
  const whose = { ...tenant, keyId, role: 'admin' as const };
  const record: Omit<ApiKeyRecord, 'revision'> = {
    ...whose,
    shortName: `admin-${keyId.toLowerCase()}`,
    description: 'given to the daemon as admin.key',
    ...keptOf(adminKey, whose, pepper),
    issuedAt: now,
    expiresAt,
  };
  await apiKeys.create(record).catch(ignoreLostRace);
};

const ignoreLostRace = (error: unknown): void => {
  if (!(error instanceof RecordExists || error instanceof RecordConflict)) throw error;
};

const textOf = (file: string): string => {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new Error(
      `${file} can't be read: ` +
        `${error instanceof Error && 'code' in error ? String(error.code) : 'unknown'}; see ` +
        'docs/kubernetes.md',
      { cause: error },
    );
  }
};
