import type { ToldVisit } from '../../../contracts/fleet/told-records.ts';
import type { signatureCheck } from '../fleet-keys.ts';
import { UnsoundWord } from '../link-words.ts';
import { SignedWord, signedWord, type ToldWords } from './told-words.ts';

export interface RecordListenerTerms<Change> {
  readonly words: ToldWords<never, Change>;
  readonly visit: ToldVisit<Change>;
  readonly isSigned: NonNullable<ReturnType<typeof signatureCheck>>;
  /** The text that the manager signed at the beginning of the link. */
  readonly transcript: string;
}

/** Hears at a worker what its manager tells of records, in order and each word once. */
export class RecordListener<Change> {
  readonly #terms: RecordListenerTerms<Change>;
  #number = 0;
  /** Those of the words so far, until all were told. */
  #told: Set<string> | undefined = new Set();
  isCaughtUp = false;

  constructor(terms: RecordListenerTerms<Change>) {
    this.#terms = terms;
  }

  /** Resolves with the answer once it holds. Rejects where it is not what comes next. */
  async take(body: unknown): Promise<object> {
    const { words, visit, isSigned, transcript } = this.#terms;
    const { text, signature } = SignedWord.parse(body);
    if (!isSigned(signedWord(words, transcript, text), signature))
      throw new UnsoundWord(
        `what it says by ${words.path} is not of the manager, or of another link`,
      );
    const { number, whole, ids, change } = words.parse(JSON.parse(text));
    if (number !== this.#number + 1 || (whole === undefined) !== (this.#told === undefined))
      throw new UnsoundWord(`what it says by ${words.path} was said before, or is out of order`);
    this.#number = number;
    const told = this.#told;
    for (const id of ids) told?.add(id);
    if (told && told.size > words.most) throw new UnsoundWord(`it tells too many by ${words.path}`);
    if (whole === 'end') this.#told = undefined;
    await visit.take(change);
    if (whole === 'end' && told) {
      await visit.caughtUp(told);
      this.isCaughtUp = true;
    }
    return visit.remade ? { number, remade: visit.remade } : { number };
  }

  async left(): Promise<void> {
    await this.#terms.visit.left();
  }

  end(): void {
    this.#terms.visit.end();
  }
}
