import type { ClientHttp2Session } from 'node:http2';
import type { Clock } from '../../../contracts/clock.ts';
import type { ToldSource, ToldVisit } from '../../../contracts/fleet/told-records.ts';
import type { FleetKey, signatureCheck } from '../fleet-keys.ts';
import { ask } from '../link-calls.ts';
import { z } from 'zod';
import { UnsoundWord } from '../link-words.ts';

/** The most characters of one word that tells of records. */
export const MOST_TOLD = 1_048_576;

/**
 * Says how the records of one kind are told over a link, by POST to `path`: all of them at first,
 * in several words where they are many, and each change from then on. The manager signs the text of
 * a word together with what both said at the beginning of the link; its number on the link goes up
 * by one each time. So none can be said again, on this link or another.
 */
export interface ToldWords<Told, Change> {
  readonly path: string;
  /** Begins what is signed, so that a word of one kind is none of another. */
  readonly title: string;
  /** Records that one word holds. */
  readonly atOnce: number;
  /** How long a worker may take to have a word hold. */
  readonly withinMs: number;
  /** Records that a worker takes from one manager. */
  readonly most: number;
  readonly idOf: (told: Told) => string;
  /** Puts records under the name that they have in a word. */
  readonly put: (told: readonly Told[]) => object;
  /** Throws where it is no such word. */
  readonly parse: (word: unknown) => HeardWord<Change>;
}

export interface HeardWord<Change> {
  readonly number: number;
  readonly whole?: 'more' | 'end';
  readonly ids: readonly string[];
  readonly change: Change;
}

/** Is ms since the epoch; a Date can be made of each. */
export const moment = z.number().min(0).max(4e15);

/** Holds what is alike in all words of records. */
export const wordFields = {
  number: z.int(),
  /** The manager's time, in ms. */
  now: moment,
  /** `end`: these, and those of the words before this one, are all. Absent: a change. */
  whole: z.enum(['more', 'end']).optional(),
};

export const SignedWord = z.object({ text: z.string().max(MOST_TOLD), signature: z.string() });

/**
 * The answer to a word: it holds at the worker. `remade`: how many copies the worker made anew over
 * this link, since they had been kept with another pepper than it has.
 */
export const WordTaken = z.object({
  number: z.int(),
  remade: z.int().min(1).max(1_000_000).optional(),
});

/** Returns what the manager signs. `transcript`: what it signed at the beginning of the link. */
export const signedWord = (
  { title }: Pick<ToldWords<never, unknown>, 'title'>,
  transcript: string,
  text: string,
): string => JSON.stringify([title, transcript, text]);

export interface RecordTellerTerms<Told> {
  readonly words: ToldWords<Told, unknown>;
  readonly session: ClientHttp2Session;
  readonly source: ToldSource<Told>;
  readonly key: FleetKey;
  /** The text that the manager signed at the beginning of the link. */
  readonly transcript: string;
  readonly clock: Clock;
  /** The worker says that it made so many copies anew, over all of this link. */
  readonly remade: (count: number) => void;
  /** The worker does not answer, or not what it should. */
  readonly failed: (why: string) => void;
}

/** Tells one worker of records: all of them first, then each change, one word at a time. */
export class RecordTeller<Told> {
  readonly #terms: RecordTellerTerms<Told>;
  readonly #changed = new Set<string>();
  readonly #unfollow: () => void;
  #number = 0;
  #isCaughtUp = false;
  #telling: Promise<void> | undefined;
  #over = false;

  constructor(terms: RecordTellerTerms<Told>) {
    this.#terms = terms;
    // before all are read, so that no change falls between
    this.#unfollow = terms.source.follow((id) => {
      this.#changed.add(id);
      if (this.#isCaughtUp) this.#tell(() => this.#tellChanges());
    });
  }

  /** Resolves once the worker knows all. Rejects where it says anything else. */
  async tellAll(inTime = (say: () => Promise<void>) => say()): Promise<void> {
    const { source, words } = this.#terms;
    const all = await source.list();
    for (let next = 0; !this.#over; next += words.atOnce) {
      const isLast = next + words.atOnce >= all.length;
      // as they are by now: what another link told meanwhile must not be unsaid
      const part = all
        .slice(next, next + words.atOnce)
        .flatMap((each) => source.find(words.idOf(each)) ?? []);
      await inTime(() => this.#say(part, { gone: [], whole: isLast ? 'end' : 'more' }));
      if (isLast) break;
    }
    this.#isCaughtUp = true;
    if (this.#changed.size > 0) this.#tell(() => this.#tellChanges());
  }

  /** Tells all while the link carries requests already: each word has its time. */
  tellBeside(): void {
    this.#tell(() => this.tellAll((say) => this.#inTime(say)));
  }

  /** Resolves once the worker knows what changed before this call, or the link is over. */
  async settled(): Promise<void> {
    while (this.#telling && !this.#over) await this.#telling;
  }

  stop(): void {
    this.#over = true;
    this.#unfollow();
  }

  #tell(work: () => Promise<void>): void {
    this.#telling ??= work()
      .catch((error: unknown) => {
        this.#terms.failed(error instanceof Error ? error.message : String(error));
      })
      .finally(() => {
        this.#telling = undefined;
        if (this.#changed.size > 0 && this.#isCaughtUp && !this.#over)
          this.#tell(() => this.#tellChanges());
      });
  }

  async #tellChanges(): Promise<void> {
    const { source, words } = this.#terms;
    while (this.#changed.size > 0 && !this.#over) {
      const told = [...this.#changed].slice(0, words.atOnce);
      for (const id of told) this.#changed.delete(id);
      const records = told.flatMap((id) => source.find(id) ?? []);
      const gone = told.filter((id) => !source.find(id));
      await this.#inTime(() => this.#say(records, { gone }));
    }
  }

  async #inTime(say: () => Promise<void>): Promise<void> {
    const { clock, words, failed } = this.#terms;
    const callOff = clock.at(clock.now() + words.withinMs, () => {
      failed(`it does not say that it took what it was told by ${words.path}`);
    });
    try {
      await say();
    } finally {
      callOff();
    }
  }

  async #say(
    records: readonly Told[],
    also: { readonly gone: readonly string[]; readonly whole?: 'more' | 'end' },
  ): Promise<void> {
    const { words, session, clock, key, transcript } = this.#terms;
    this.#number += 1;
    const said = { ...words.put(records), ...also, number: this.#number, now: clock.now() };
    const text = JSON.stringify(said);
    const signature = key.sign(signedWord(words, transcript, text));
    const answer = WordTaken.parse(await ask(session, words.path, { text, signature }));
    if (answer.number !== this.#number) throw new Error('it claims what it was not told');
    if (answer.remade !== undefined) this.#terms.remade(answer.remade);
  }
}

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
