import { MOST_PROMOTED, type PromotedKeyVisit } from '../contracts/fleet/promoted-keys.ts';
import type { signatureCheck } from './fleet-keys.ts';
import { Keys, KeysWord, signedKeys } from './promoted-words.ts';

export interface KeyListenerTerms {
  readonly visit: PromotedKeyVisit;
  readonly isSigned: NonNullable<ReturnType<typeof signatureCheck>>;
  /** The text that the manager signed at the beginning of the link. */
  readonly transcript: string;
}

/** Hears at a worker which keys are promoted, in order and each word once. */
export class KeyListener {
  readonly #terms: KeyListenerTerms;
  #number = 0;
  /** Those of the words so far, until all were told. */
  #told: Set<string> | undefined = new Set();
  isCaughtUp = false;

  constructor(terms: KeyListenerTerms) {
    this.#terms = terms;
  }

  /** Resolves with the answer once it holds. Rejects where it is not what comes next. */
  async take(body: unknown): Promise<object> {
    const { visit, isSigned, transcript } = this.#terms;
    const { text, signature } = KeysWord.parse(body);
    if (!isSigned(signedKeys(transcript, text), signature))
      throw new Error('what it says of keys is not of the manager, or of another link');
    const { number, whole, keys, gone, now } = Keys.parse(JSON.parse(text));
    if (number !== this.#number + 1 || (whole === undefined) !== (this.#told === undefined))
      throw new Error('what it says of keys was said before, or is out of order');
    this.#number = number;
    const told = this.#told;
    for (const { keyId } of keys) told?.add(keyId);
    if (told && told.size > MOST_PROMOTED) throw new Error('it promotes too many keys');
    if (whole === 'end') this.#told = undefined;
    await visit.take({ keys, gone, now });
    if (whole === 'end' && told) {
      await visit.caughtUp(told);
      this.isCaughtUp = true;
    }
    return { number };
  }

  async left(): Promise<void> {
    await this.#terms.visit.left();
  }

  end(): void {
    this.#terms.visit.end();
  }
}
