import type { RequestMark } from '../model/request-mark.ts';
import type { Database } from './database.ts';

/** Where the answers to requests with an Idempotency-Key lie. Writes are durable when they resolve, and land in the order of the calls. */
export interface AnswerRows {
  page(after: number, limit: number): Promise<readonly { readonly seq: number; readonly key: string; readonly principal: string; readonly expiresAt: number }[]>;
  /** Undefined where there is none, or its time has passed. */
  read(key: string, now: number): Promise<{ readonly body: string; readonly answer: string } | undefined>;
  keep(mark: RequestMark, owner: { readonly principal: string; readonly expiresAt: number }, answer: string): Promise<void>;
  forget(key: string): Promise<void>;
}

export const sqliteAnswerRows = (database: Database): AnswerRows => ({
  page: async (after, limit) => (await database.run('answers.page', after, limit)).map(([seq, key, principal, expiresAt]) =>
    ({ seq: Number(seq), key: String(key), principal: String(principal), expiresAt: Number(expiresAt) })),
  read: async (key, now) => {
    const [row] = await database.run('answers.read', key, now);
    return row && { body: String(row[0]), answer: String(row[1]) };
  },
  keep: async ({ key, body }, { principal, expiresAt }, answer) => {
    await database.runSoon('answers.keep', key, principal, body, expiresAt, answer);
  },
  forget: async (key) => { await database.runSoon('answers.forget', key); },
});
