import type { ClientHttp2Session } from 'node:http2';
import type { Clock } from '../../../contracts/clock.ts';
import type { ToldSource } from '../../../contracts/fleet/told-records.ts';
import type { FleetKey } from '../fleet-keys.ts';
import { ask } from '../link-calls.ts';
import { signedWord, WordTaken, type ToldWords } from './told-words.ts';

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
