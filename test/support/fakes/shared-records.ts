import type { Clock } from '../../../src/contracts/clock.ts';
import type { RecordChange, Records } from '../../../src/contracts/record-store.ts';
import { OutcomeUnknown, RecordConflict } from '../../../src/contracts/sandbox-driver.ts';
import { Mirror } from '../../../src/model/mirror/mirror.ts';
import type { Version } from '../../../src/model/mirror/mirror-terms.ts';
import type { WriteFault } from './memory-instance-records.ts';

/** A process's life: once it is over, nothing resolves or has an effect. */
export class Life {
  #over = false;

  get over(): boolean {
    return this.#over;
  }

  end(): void {
    this.#over = true;
  }

  clock(clock: Clock): Clock {
    return {
      now: () => clock.now(),
      at: (moment, due) =>
        clock.at(moment, () => {
          if (!this.#over) due();
        }),
    };
  }

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

/**
 * A process's view of a shared store. Updates may fail, and watched changes may be late; its own
 * reads and writes are reported at once.
 */
export class SharedRecords<T extends Named> implements Records<T> {
  readonly faults: WriteFault[] = [];
  /** `blind`: believes to be up to date until `catchUp`. */
  readonly failures: { get?: Error; caughtUp?: Error; blind?: boolean } = {};
  readonly reads: string[] = [];
  readonly #truth: Records<T>;
  readonly #life: Life;
  readonly #followers: ((change: RecordChange<T>) => void)[] = [];
  readonly #mirror = new Mirror<T>({
    report: ({ type, record }) => {
      for (const follower of this.#followers) follower({ kind: type, record });
    },
  });
  #watching: Promise<void> | undefined;
  #late: (() => void)[] | undefined;

  constructor(truth: Records<T>, life: Life) {
    [this.#truth, this.#life] = [truth, life];
  }

  list(): Promise<readonly T[]> {
    return this.#life.through(() => this.#truth.list());
  }

  get(key: string): Promise<T | undefined> {
    return this.#life.through(async () => {
      this.reads.push(key);
      if (this.failures.get) throw this.failures.get;
      const found = this.#mirror.read(key);
      const record = await this.#truth.get(key);
      found(record && versionOf(record));
      return record;
    });
  }

  create(draft: Omit<T, 'revision'>, permitted?: () => boolean): Promise<T> {
    return this.#life.through(async () => this.#learnt(await this.#truth.create(draft, permitted)));
  }

  remove(record: T): Promise<void> {
    return this.#life.through(async () => {
      await this.#truth.remove(record);
      this.#mirror.removed(versionOf(record).key, { uid: record.uid });
    });
  }

  update(record: T, permitted?: () => boolean): Promise<T> {
    return this.#life.through(async () => {
      const fault = this.faults.shift();
      if (fault === 'conflict') throw new RecordConflict('told to conflict');
      if (fault === 'unknown-lost') throw new OutcomeUnknown('told to be lost');
      const written = await this.#truth.update(record, permitted);
      if (fault === 'unknown-landed') throw new OutcomeUnknown('told to be unknown');
      return this.#learnt(written);
    });
  }

  async watch(report: (change: RecordChange<T>) => void): Promise<void> {
    await (this.#watching ??= this.#truth.watch((change) => {
      if (this.#life.over) return;
      if (this.#late)
        this.#late.push(() => {
          this.#take(change);
        });
      else this.#take(change);
    }));
    for (const key of this.#mirror.keys()) {
      const record = this.#mirror.get(key);
      if (record) report({ kind: 'put', record });
    }
    this.#followers.push(report);
  }

  caughtUp(): Promise<void> {
    return this.#life.through(async () => {
      if (this.failures.caughtUp) throw this.failures.caughtUp;
      if (!this.failures.blind) for (const tell of this.#late?.splice(0) ?? []) tell();
    });
  }

  /** Reports changes only at `catchUp`. */
  lag(): void {
    this.#late ??= [];
  }

  catchUp(): void {
    const due = this.#late ?? [];
    this.#late = undefined;
    for (const tell of due) tell();
  }

  #take({ kind, record }: RecordChange<T>): void {
    if (kind === 'put') this.#mirror.told(versionOf(record));
    else this.#mirror.toldGone(versionOf(record));
  }

  #learnt(record: T): T {
    if (!this.#life.over) this.#mirror.learn(versionOf(record));
    return record;
  }
}

interface Named {
  readonly revision: string;
  readonly uid: string;
  readonly name: string;
  readonly owner: { readonly namespace: string };
}

const versionOf = <T extends Named>(record: T): Version<T> => ({
  key: `${record.owner.namespace}/${record.name}`,
  uid: record.uid,
  revision: record.revision,
  record,
});
