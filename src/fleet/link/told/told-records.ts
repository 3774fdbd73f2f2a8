import type { ClientHttp2Session } from 'node:http2';
import type { Clock } from '../../../contracts/clock.ts';
import type { ToldSource, ToldVisit } from '../../../contracts/fleet/told-records.ts';
import type { FleetKey, signatureCheck } from '../fleet-keys.ts';
import { ask } from '../link-calls.ts';
import { z } from 'zod';
import { UnsoundWord } from '../link-words.ts';

export const MOST_TOLD = 1_048_576;

/**
 * Replicates one kind of records: first all, in batches, then each change, by POST to `path`. The
 * manager signs each message with the link's transcript and a number that goes up by one, so it
 * cannot be replayed on any link.
 */
export interface ToldWords<Told, Change> {
  readonly path: string;
  /** Begins the signed text, so that no message is valid as another kind. */
  readonly title: string;
  readonly atOnce: number;
  readonly withinMs: number;
  readonly most: number;
  readonly idOf: (told: Told) => string;
  readonly put: (told: readonly Told[]) => object;
  /** Throws if the message is malformed. */
  readonly parse: (word: unknown) => HeardWord<Change>;
}

export interface HeardWord<Change> {
  readonly number: number;
  readonly whole?: 'more' | 'end';
  readonly ids: readonly string[];
  readonly change: Change;
}

/** Milliseconds since the epoch, within the range of Date. */
export const moment = z.number().min(0).max(4e15);

export const wordFields = {
  number: z.int(),
  /** The manager's time in ms. */
  now: moment,
  /** `end`: the last batch of the full list; `more`: others follow. Absent for a change. */
  whole: z.enum(['more', 'end']).optional(),
};

const SignedWord = z.object({ text: z.string().max(MOST_TOLD), signature: z.string() });

/** `remade`: copies rebuilt over this link, which were stored with another pepper. */
const WordTaken = z.object({
  number: z.int(),
  remade: z.int().min(1).max(1_000_000).optional(),
});

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
  /** Text that was signed when the link began. */
  readonly transcript: string;
  readonly clock: Clock;
  readonly remade: (count: number) => void;
  readonly failed: (why: string) => void;
}

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
    // before the list is read, so that no change is missed
    this.#unfollow = terms.source.follow((id) => {
      this.#changed.add(id);
      if (this.#isCaughtUp) this.#tell(() => this.#tellChanges());
    });
  }

  /** Rejects if the worker answers anything else. */
  async tellAll(inTime = (say: () => Promise<void>) => say()): Promise<void> {
    const { source, words } = this.#terms;
    const all = await source.list();
    for (let next = 0; !this.#over; next += words.atOnce) {
      const isLast = next + words.atOnce >= all.length;
      // the current records: they must not undo a change that another link has sent
      const part = all
        .slice(next, next + words.atOnce)
        .flatMap((each) => source.find(words.idOf(each)) ?? []);
      await inTime(() => this.#say(part, { gone: [], whole: isLast ? 'end' : 'more' }));
      if (isLast) break;
    }
    this.#isCaughtUp = true;
    if (this.#changed.size > 0) this.#tell(() => this.#tellChanges());
  }

  tellBeside(): void {
    this.#tell(() => this.tellAll((say) => this.#inTime(say)));
  }

  /** Resolves once the worker has confirmed all earlier changes, or the link is over. */
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
      failed(`it did not confirm the message at ${words.path}`);
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
    if (answer.number !== this.#number) throw new Error('it confirmed a message that was not sent');
    if (answer.remade !== undefined) this.#terms.remade(answer.remade);
  }
}

export interface RecordListenerTerms<Change> {
  readonly words: ToldWords<never, Change>;
  readonly visit: ToldVisit<Change>;
  readonly isSigned: NonNullable<ReturnType<typeof signatureCheck>>;
  /** Text that was signed when the link began. */
  readonly transcript: string;
}

export class RecordListener<Change> {
  readonly #terms: RecordListenerTerms<Change>;
  #number = 0;
  /** Undefined once the full list has arrived. */
  #told: Set<string> | undefined = new Set();
  isCaughtUp = false;

  constructor(terms: RecordListenerTerms<Change>) {
    this.#terms = terms;
  }

  /** Rejects if this is not the next valid message. */
  async take(body: unknown): Promise<object> {
    const { words, visit, isSigned, transcript } = this.#terms;
    const { text, signature } = SignedWord.parse(body);
    if (!isSigned(signedWord(words, transcript, text), signature))
      throw new UnsoundWord(
        `the message at ${words.path} is not signed by the manager for this link`,
      );
    const { number, whole, ids, change } = words.parse(JSON.parse(text));
    if (number !== this.#number + 1 || (whole === undefined) !== (this.#told === undefined))
      throw new UnsoundWord(`the message at ${words.path} was repeated, or is out of order`);
    this.#number = number;
    const told = this.#told;
    for (const id of ids) told?.add(id);
    if (told && told.size > words.most)
      throw new UnsoundWord(`it sent too many items at ${words.path}`);
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
