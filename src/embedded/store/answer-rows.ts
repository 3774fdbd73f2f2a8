import type { Database } from './database.ts';

/** An answer, or the place that a request was forwarded to. */
export type KeptText = { readonly answer: string } | { readonly place: string };

/** `seq` is the order of storing. */
export interface AnswerEntry {
  readonly seq: number;
  readonly key: string;
  /** See `tenantKey`. */
  readonly tenant: string;
  /** In UTF-8. */
  readonly bytes: number;
  readonly expiresAt: number;
}

/**
 * Looked up by number only: an index by key would cost each claim another page. Writes are durable
 * when they resolve, in the order of the calls.
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
