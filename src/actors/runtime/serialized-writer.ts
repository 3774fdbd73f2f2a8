import type { Records } from '../../contracts/record-store.ts';
import { LeaseLost, RecordConflict } from '../../contracts/sandbox-driver.ts';
import type { Revision } from '../../model/identifiers.ts';

export interface SerializedWriterDeps<T extends { readonly revision: Revision }> {
  readonly records: Pick<Records<T>, 'get' | 'update'>;
  readonly storeKeyOf: (record: T) => string;
  readonly current: (key: string) => T | undefined;
}

const MOST_ATTEMPTS = 4;

/** Writes of this process never conflict with each other. */
export class SerializedWriter<T extends { readonly revision: Revision }> {
  readonly #deps: SerializedWriterDeps<T>;
  readonly #writing = new Map<string, Promise<unknown>>();

  constructor(deps: SerializedWriterDeps<T>) {
    this.#deps = deps;
  }

  /**
   * Calls `change` again after a conflict, or if the write was no longer permitted. Undefined if
   * the record is unknown. Rejects with RecordConflict, LeaseLost or OutcomeUnknown.
   */
  async change(
    key: string,
    change: (record: T) => T | Promise<T>,
    permitted?: () => boolean,
  ): Promise<T | undefined> {
    const { records, current, storeKeyOf } = this.#deps;
    return await this.runExclusive(key, async () => {
      for (let attempt = 1; ; attempt++) {
        const before = current(key);
        if (!before) return undefined;
        try {
          const changed = await change(before);
          if (changed === before) return before;
          return await records.update(changed, permitted);
        } catch (error) {
          if (
            !(error instanceof RecordConflict || error instanceof LeaseLost) ||
            attempt === MOST_ATTEMPTS
          )
            throw error;
          if (error instanceof RecordConflict) await records.get(storeKeyOf(before));
        }
      }
    });
  }

  async runExclusive<R>(key: string, write: () => Promise<R>): Promise<R> {
    const turn = (this.#writing.get(key) ?? Promise.resolve()).catch(() => undefined).then(write);
    this.#writing.set(key, turn);
    try {
      return await turn;
    } finally {
      if (this.#writing.get(key) === turn) this.#writing.delete(key);
    }
  }
}
