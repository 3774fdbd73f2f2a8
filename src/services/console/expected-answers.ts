import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { Clock } from '../../contracts/clock.ts';
import type { ExpectedAnswer } from '../../contracts/identity-provider.ts';

/** In ms. */
const WAIT_MS = 10 * 60_000;
const IV_BYTES = 12;
const TAG_BYTES = 16;

export interface WaitedAnswer {
  readonly expected: ExpectedAnswer;
  readonly replaces: string | undefined;
  readonly next?: string;
}

/**
 * The browser carries the sealed values, so any replica may accept the answer, and only from the
 * browser that began.
 */
export class ExpectedAnswers {
  readonly #key: Buffer;
  readonly #clock: Clock;

  constructor(key: Buffer, clock: Clock) {
    this.#key = key;
    this.#clock = clock;
  }

  seal(waited: WaitedAnswer): string {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#key, iv);
    const text = JSON.stringify({ ...waited, until: this.#clock.now() + WAIT_MS });
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url');
  }

  /** Undefined if the text was not sealed here, or has expired. */
  open(text: string): WaitedAnswer | undefined {
    const bytes = Buffer.from(text, 'base64url');
    if (bytes.length <= IV_BYTES + TAG_BYTES) return undefined;
    try {
      const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, IV_BYTES), {
        authTagLength: TAG_BYTES,
      });
      decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
      const opened = Buffer.concat([
        decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)),
        decipher.final(),
      ]).toString('utf8');
      const waited = JSON.parse(opened) as WaitedAnswer & { readonly until: number };
      return waited.until > this.#clock.now() ? waited : undefined;
    } catch {
      return undefined;
    }
  }
}
