import { createCipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { PullSecrets } from '../../contracts/pull-secrets.ts';
import type { Database } from './database.ts';

/**
 * Sealed (AES-256-GCM: nonce, tag, text) by a key derived from the pepper, which is not in the
 * database. Images come from this machine's folders, so nothing opens the passwords.
 */
export const sqlitePullSecrets = (
  database: Database,
  pepper: Buffer,
): PullSecrets & { start(): Promise<void> } => ({
  /** Their pools' creation was interrupted. */
  start: async () => {
    await database.run('pullSecrets.sweep');
  },
  keep: async ({ uid }, registries) => {
    await database.run('pullSecrets.keep', uid, sealed(JSON.stringify(registries), uid, pepper));
  },
  forget: async ({ uid }) => {
    await database.run('pullSecrets.forget', uid);
  },
});

const NONCE_BYTES = 12;

const sealed = (text: string, poolUid: string, pepper: Buffer): string => {
  const nonce = randomBytes(NONCE_BYTES);
  const key = Buffer.from(hkdfSync('sha256', pepper, poolUid, 'sandpool pull secret', 32));
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(poolUid));
  const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64');
};
