import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { TextPairs } from '../../model/claim-terms.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import { claimEnvUnreadable } from '../../model/refusals.ts';
import type { Claim } from '../../model/sandbox.ts';
import { tenantKey, type Tenant } from '../../model/tenant.ts';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * A seal is AES-256-GCM (nonce, tag, text) under a key derived from the pepper, bound to sandbox
 * and owner: a copy in another record can't be opened. Opened variables are not cached.
 */
export class ClaimEnv {
  readonly #key: Buffer;

  constructor(pepper: Buffer) {
    this.#key = Buffer.from(hkdfSync('sha256', pepper, '', 'sandpool claim env', 32));
  }

  seal(id: InstanceId, owner: Tenant, env: TextPairs): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce).setAAD(boundTo(id, owner));
    const body = Buffer.concat([cipher.update(textOf(env), 'utf8'), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64');
  }

  /**
   * `own` wins. Throws a Refusal if this installation did not seal the claim's variables for this
   * sandbox.
   */
  over(
    record: { readonly id: InstanceId; readonly claim?: Claim } | undefined,
    own?: TextPairs,
  ): TextPairs | undefined {
    const { claim } = record ?? {};
    if (!record || claim?.sealedEnv === undefined) return own;
    return { ...this.#opened(record.id, claim.owner, claim.sealedEnv), ...own };
  }

  #opened(id: InstanceId, owner: Tenant, sealed: string): TextPairs {
    const bytes = Buffer.from(sealed, 'base64');
    try {
      const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      })
        .setAAD(boundTo(id, owner))
        .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
      const text = Buffer.concat([
        decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)),
        decipher.final(),
      ]).toString('utf8');
      return envOf(text);
    } catch {
      throw claimEnvUnreadable();
    }
  }
}

/** `name=value`, each with a final NUL. JSON could be six times as long. */
const textOf = (env: TextPairs): string =>
  Object.entries(env)
    .map(([name, value]) => `${name}=${value}\0`)
    .join('');

const envOf = (text: string): TextPairs =>
  Object.fromEntries(
    text
      .split('\0')
      .slice(0, -1)
      .map((pair): [string, string] => {
        const at = pair.indexOf('=');
        return [pair.slice(0, at), pair.slice(at + 1)];
      }),
  );

const boundTo = (id: InstanceId, owner: Tenant): Buffer => Buffer.from(`${tenantKey(owner)}/${id}`);
