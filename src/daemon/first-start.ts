import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writePrivate } from '../lib/private-file.ts';
import { parseApiKey } from '../model/api-key-text.ts';
import type { Role, Tenant } from '../model/tenant.ts';
import type { ApiKeyMirror } from '../services/keys/api-keys.ts';
import { mintApiKey, secretMatches } from '../services/keys/mint-api-key.ts';

export interface FirstKeysDeps {
  readonly dataDir: string;
  readonly apiKeys: ApiKeyMirror;
  readonly pepper: Buffer;
  readonly now: number;
  readonly lifetimeMs: number;
  /** Team and user `default`. */
  readonly tenant: Tenant;
}

/** Made once. Its loss invalidates every key. */
export const readOrMakePepper = (dataDir: string): Buffer => {
  const file = join(dataDir, 'keys', 'pepper');
  if (!existsSync(file)) writePrivate(file, randomBytes(32).toString('hex'));
  const pepper = Buffer.from(readFileSync(file, 'utf8').trim(), 'hex');
  if (pepper.length !== 32)
    throw new Error(
      `${file} is damaged: restore a backup with sandpool restore FILE, or delete it with ` +
        'the keys beside it to start with new keys',
    );
  return pepper;
};

/**
 * Makes `keys/admin.key` and `keys/tenant.key` (mode 0600) if they are missing or invalid. Extends
 * a key past half of its lifetime, since the keys made with it end with it.
 */
export const ensureFirstKeys = async (deps: FirstKeysDeps): Promise<void> => {
  await ensureKey(deps, 'admin');
  await ensureKey(deps, 'user');
};

const ensureKey = async (
  { dataDir, apiKeys, pepper, now, lifetimeMs, tenant }: FirstKeysDeps,
  role: Role,
): Promise<void> => {
  const name = role === 'admin' ? 'admin' : 'tenant';
  const file = join(dataDir, 'keys', `${name}.key`);
  const held = existsSync(file) ? parseApiKey(readFileSync(file, 'utf8').trim()) : undefined;
  const record = held && apiKeys.find(held.keyId);
  if (
    record &&
    record.role === role &&
    record.expiresAt > now &&
    secretMatches(held.secret, record, pepper)
  ) {
    if (record.expiresAt - now < lifetimeMs / 2)
      await apiKeys.renew({ ...record, expiresAt: now + lifetimeMs });
    return;
  }
  const minted = mintApiKey(
    {
      tenant,
      role,
      shortName: `${name}-${randomBytes(4).toString('hex')}`,
      description: `created by the daemon for ${name}.key`,
      issuedAt: now,
      expiresAt: now + lifetimeMs,
    },
    pepper,
  );
  await apiKeys.create(minted.record);
  writePrivate(file, `${minted.apiKey}\n`);
};
