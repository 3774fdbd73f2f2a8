import type { AnswerEntry, AnswerRows } from '../../../src/embedded/store/answer-rows.ts';

interface Row extends AnswerEntry {
  readonly body: string;
  readonly answer: string;
}

/** The kept answers in memory, in the order of their writing. */
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

  keep = async (entry: AnswerEntry, body: string, answer: string): Promise<void> => {
    this.rows.set(entry.seq, { ...entry, body, answer });
  };

  forget = async (seq: number): Promise<void> => {
    this.rows.delete(seq);
  };
}
