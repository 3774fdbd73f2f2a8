import type { Clock } from '../../src/contracts/clock.ts';
import type { RecordChange, Records } from '../../src/contracts/record-store.ts';
import { OutcomeUnknown, RecordConflict } from '../../src/contracts/sandbox-driver.ts';
import type { WriteFault } from './memory-instance-records.ts';

/** One process's life: once it is over, nothing that it awaits comes, and nothing that it does has an effect. */
export class Life {
  #over = false;

  get over(): boolean { return this.#over; }

  end(): void { this.#over = true; }

  /** The clock as the process has it. */
  clock(clock: Clock): Clock {
    return { now: () => clock.now(), at: (moment, due) => clock.at(moment, () => { if (!this.#over) due(); }) };
  }

  /** What `work` comes to, or nothing ever. */
  async through<T>(work: () => Promise<T>): Promise<T> {
    if (this.#over) return await NEVER;
    try {
      const result = await work();
      return this.#over ? await NEVER : result;
    } catch (error) {
      if (this.#over) return await NEVER;
      throw error;
    }
  }
}

const NEVER = new Promise<never>(() => undefined);

/** What one of several processes has of a store that all share. Its next updates fail as they are told to; what it watches may come late. */
export class SharedRecords<T extends { readonly revision: string }> implements Records<T> {
  readonly faults: WriteFault[] = [];
  readonly #truth: Records<T>;
  readonly #life: Life;
  #late: (() => void)[] | undefined;

  constructor(truth: Records<T>, life: Life) { [this.#truth, this.#life] = [truth, life]; }

  list(): Promise<readonly T[]> { return this.#life.through(() => this.#truth.list()); }
  get(key: string): Promise<T | undefined> { return this.#life.through(() => this.#truth.get(key)); }
  create(draft: Omit<T, 'revision'>): Promise<T> { return this.#life.through(() => this.#truth.create(draft)); }
  remove(record: T): Promise<void> { return this.#life.through(() => this.#truth.remove(record)); }

  update(record: T): Promise<T> {
    return this.#life.through(async () => {
      const fault = this.faults.shift();
      if (fault === 'conflict') throw new RecordConflict('told to conflict');
      if (fault === 'unknown-lost') throw new OutcomeUnknown('told to be lost');
      const written = await this.#truth.update(record);
      if (fault === 'unknown-landed') throw new OutcomeUnknown('told to be unknown');
      return written;
    });
  }

  async watch(report: (change: RecordChange<T>) => void): Promise<void> {
    await this.#truth.watch((change) => {
      if (this.#life.over) return;
      if (this.#late) this.#late.push(() => { report(change); });
      else report(change);
    });
  }

  /** What changes is told of at `catchUp`. */
  lag(): void { this.#late ??= []; }

  catchUp(): void {
    const due = this.#late ?? [];
    this.#late = undefined;
    for (const tell of due) tell();
  }
}
