import { hkdfSync } from 'node:crypto';
import { seal, unseal } from '../keys/sealed-box.ts';
import { unavailable } from '../../model/refusals.ts';

/**
 * Content may hold a secret. The key is derived from the pepper, and the seal is bound to the
 * approval.
 */
export class SealedContents {
  readonly #key: Buffer;

  constructor(pepper: Buffer) {
    this.#key = Buffer.from(hkdfSync('sha256', pepper, '', 'sandpool approval content', 32));
  }

  seal(id: string, content: Buffer): string {
    return seal(this.#key, id, content);
  }

  /** Throws a Refusal if it was not sealed for this approval. */
  open(id: string, text: string): Buffer {
    const content = unseal(this.#key, id, text);
    if (!content) throw unavailable('the contents of this request cannot be read; deny it');
    return content;
  }
}
