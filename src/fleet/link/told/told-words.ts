import { z } from 'zod';

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
