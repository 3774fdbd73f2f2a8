import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { unavailable } from '../../model/refusals.ts';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Seals what was sent with a request that waits for a person: it may hold a secret, and lies in the
 * store until it is decided. A seal (AES-256-GCM: nonce, tag, text) is under a key that is derived
 * from the pepper, and bound to the approval.
 */
export class SealedContents {
  readonly #key: Buffer;

  constructor(pepper: Buffer) {
    this.#key = Buffer.from(hkdfSync('sha256', pepper, '', 'sandpool approval content', 32));
  }

  seal(id: string, content: Buffer): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce).setAAD(Buffer.from(id));
    const sealed = Buffer.concat([cipher.update(content), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64');
  }

  /** Returns it byte for byte. Throws a Refusal where it was not sealed for this approval. */
  open(id: string, text: string): Buffer {
    const bytes = Buffer.from(text, 'base64');
    try {
      const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      })
        .setAAD(Buffer.from(id))
        .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
      return Buffer.concat([
        decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)),
        decipher.final(),
      ]);
    } catch {
      throw unavailable('the contents of this request can not be read; deny it');
    }
  }
}
