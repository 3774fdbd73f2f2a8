import type { AnswerEntry, AnswerRows, KeptText } from '../../../src/embedded/store/answer-rows.ts';

type Row = AnswerEntry & { readonly body: string } & KeptText;

/** In the order of their writing. */
export class MemoryAnswerRows implements AnswerRows {
  readonly rows = new Map<number, Row>();

  get keys(): readonly string[] {
    return [...this.rows.values()].map(({ key }) => key);
  }

  page = async (after: number, limit: number): Promise<readonly Row[]> =>
    [...this.rows.values()]
      .filter(({ seq }) => seq > after)
      .sort((a, b) => a.seq - b.seq)
      .slice(0, limit);

  read = async (seq: number): Promise<Row | undefined> => this.rows.get(seq);

  keep = async (entry: AnswerEntry, body: string, kept: KeptText): Promise<void> => {
    this.rows.set(entry.seq, { ...entry, body, ...kept });
  };

  forget = async (seq: number): Promise<void> => {
    this.rows.delete(seq);
  };
}
