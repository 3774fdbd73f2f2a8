import type { Records } from '../../contracts/record-store.ts';
import { LeaseLost, RecordConflict } from '../../contracts/sandbox-driver.ts';
import type { Revision } from '../../model/identifiers.ts';
import type { Owned } from './owned-index.ts';

export interface SerializedWriterDeps<T> {
  readonly records: Pick<Records<T & { readonly revision: Revision }>, 'get' | 'update'>;
  /** As it is mirrored here. */
  readonly current: (uid: string) => T | undefined;
}

/** Writes of one change, each at the revision that was read last. */
const MOST_ATTEMPTS = 4;

/**
 * Changes of mirrored records, one at a time for each, so that none of this process conflicts with
 * another of it.
 */
export class SerializedWriter<T extends Owned & { readonly revision: Revision }> {
  readonly #deps: SerializedWriterDeps<T>;
  readonly #writing = new Map<string, Promise<unknown>>();

  constructor(deps: SerializedWriterDeps<T>) {
    this.#deps = deps;
  }

  /**
   * Writes a change, which the store reports to the mirror; a change to the same record is not
   * written. Where somebody else's write came first, or where the write was no longer permitted
   * (see Records), `change` is asked again. Answers the new record, or undefined for an unknown
   * one. Rejects with RecordConflict, LeaseLost or OutcomeUnknown.
   */
  async change(
    uid: string,
    change: (record: T) => T | Promise<T>,
    permitted?: () => boolean,
  ): Promise<T | undefined> {
    const { records, current } = this.#deps;
    return await this.runExclusive(uid, async () => {
      for (let attempt = 1; ; attempt++) {
        const before = current(uid);
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
          if (error instanceof RecordConflict) await this.readAgain(before);
        }
      }
    });
  }

  async runExclusive<R>(uid: string, write: () => Promise<R>): Promise<R> {
    const turn = (this.#writing.get(uid) ?? Promise.resolve()).catch(() => undefined).then(write);
    this.#writing.set(uid, turn);
    try {
      return await turn;
    } finally {
      if (this.#writing.get(uid) === turn) this.#writing.delete(uid);
    }
  }

  /** Somebody else's write came first: what is read is reported to who mirrors it. */
  async readAgain({ owner, name }: T): Promise<void> {
    await this.#deps.records.get(`${owner.namespace}/${name}`);
  }
}
