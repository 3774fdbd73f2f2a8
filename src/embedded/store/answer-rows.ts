import type { Database } from './database.ts';

/** The stored part of a request: its answer, or the place that it was forwarded to. */
export type KeptText = { readonly answer: string } | { readonly place: string };

/** A stored answer or place without its text. `seq` numbers the entries in the order of storing. */
export interface AnswerEntry {
  readonly seq: number;
  readonly key: string;
  /** As returned by `tenantKey`. */
  readonly tenant: string;
  /** Bytes of the answer or place, in UTF-8. */
  readonly bytes: number;
  readonly expiresAt: number;
}

/**
 * Rows of answers, and of places, for requests with an Idempotency-Key. Lookup is by number only:
 * an index by key would cost each claim another page. Writes are durable when they resolve, and
 * apply in the order of the calls.
 */
export interface AnswerRows {
  page(after: number, limit: number): Promise<readonly AnswerEntry[]>;
  read(seq: number): Promise<({ readonly body: string } & KeptText) | undefined>;
  keep(entry: AnswerEntry, body: string, kept: KeptText): Promise<void>;
  forget(seq: number): Promise<void>;
}

export const sqliteAnswerRows = (database: Database): AnswerRows => ({
  page: async (after, limit) =>
    (await database.run('answers.page', after, limit)).map(
      ([seq, key, tenant, expiresAt, bytes]) => ({
        seq: Number(seq),
        key: String(key),
        tenant: String(tenant),
        expiresAt: Number(expiresAt),
        bytes: Number(bytes),
      }),
    ),
  read: async (seq) => {
    const [row] = await database.run('answers.read', seq);
    if (!row) return undefined;
    const [body, answer, place] = row;
    return {
      body: String(body),
      ...(typeof place === 'string' ? { place } : { answer: String(answer) }),
    };
  },
  keep: async ({ seq, key, tenant, expiresAt }, body, kept) => {
    const texts = 'place' in kept ? ([null, kept.place] as const) : ([kept.answer, null] as const);
    await database.runSoon('answers.keep', seq, key, tenant, body, expiresAt, ...texts);
  },
  forget: async (seq) => {
    await database.runSoon('answers.forget', seq);
  },
});
