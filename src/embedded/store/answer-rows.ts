import type { Database } from './database.ts';

/** A kept answer without itself. `seq` numbers them in the order of their keeping. */
export interface AnswerEntry {
  readonly seq: number;
  readonly key: string;
  /** As tenantKey has it. */
  readonly tenant: string;
  /** Bytes of the answer, in UTF-8. */
  readonly bytes: number;
  readonly expiresAt: number;
}

/**
 * The rows of answers to requests with an Idempotency-Key, found by number alone: an index by key
 * would cost each claim another page. Writes are durable when they resolve, and land in the order
 * of the calls.
 */
export interface AnswerRows {
  page(after: number, limit: number): Promise<readonly AnswerEntry[]>;
  read(seq: number): Promise<{ readonly body: string; readonly answer: string } | undefined>;
  keep(entry: AnswerEntry, body: string, answer: string): Promise<void>;
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
    return row && { body: String(row[0]), answer: String(row[1]) };
  },
  keep: async ({ seq, key, tenant, expiresAt }, body, answer) => {
    await database.runSoon('answers.keep', seq, key, tenant, body, expiresAt, answer);
  },
  forget: async (seq) => {
    await database.runSoon('answers.forget', seq);
  },
});
