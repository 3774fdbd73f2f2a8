import type { AnswerRows } from '../../src/embedded/answer-rows.ts';
import type { RequestMark } from '../../src/model/request-mark.ts';

interface Row { readonly seq: number; readonly key: string; readonly principal: string; readonly body: string; readonly expiresAt: number; readonly answer: string }

/** The kept answers in memory, in the order of their writing. */
export class MemoryAnswerRows implements AnswerRows {
  readonly rows = new Map<string, Row>();
  #seq = 0;

  page = async (after: number, limit: number): Promise<readonly Row[]> =>
    [...this.rows.values()].filter(({ seq }) => seq > after).sort((a, b) => a.seq - b.seq).slice(0, limit);

  read = async (key: string, now: number): Promise<Row | undefined> => {
    const row = this.rows.get(key);
    return row && row.expiresAt > now ? row : undefined;
  };

  keep = async ({ key, body }: RequestMark, owner: { readonly principal: string; readonly expiresAt: number }, answer: string): Promise<void> => {
    this.rows.set(key, { seq: ++this.#seq, key, body, ...owner, answer });
  };

  forget = async (key: string): Promise<void> => { this.rows.delete(key); };
}
