import type { RecordChange, Records } from '../contracts/record-store.ts';
import { RecordConflict } from '../contracts/sandbox-driver.ts';
import type { Revision } from '../model/identifiers.ts';
import type { Owned } from './owned-index.ts';

export interface RecordTurnsDeps<T> {
  readonly records: Pick<Records<T & { readonly revision: Revision }>, 'get' | 'update'>;
  /** As it is mirrored here. */
  readonly current: (uid: string) => T | undefined;
  readonly learn: (change: RecordChange<T>) => void;
  /** It is there no more, or another of its name is. */
  readonly lost: (record: T) => void;
}

/** Writes of one change, each at the revision that was read last. */
const MOST_ATTEMPTS = 4;

/** Changes of mirrored records, one at a time for each, so that none of this process conflicts with another of it. */
export class RecordTurns<T extends Owned & { readonly revision: Revision }> {
  readonly #deps: RecordTurnsDeps<T>;
  readonly #writing = new Map<string, Promise<unknown>>();

  constructor(deps: RecordTurnsDeps<T>) { this.#deps = deps; }

  /**
   * Writes a change and takes it into the mirror; a change to the same record is not written. Where somebody else's write
   * came first, `change` is asked again. Answers the new record, or undefined for an unknown one. Rejects with
   * RecordConflict or OutcomeUnknown.
   */
  async change(uid: string, change: (record: T) => T | Promise<T>): Promise<T | undefined> {
    const { records, current, learn } = this.#deps;
    return await this.inTurn(uid, async () => {
      for (let attempt = 1; ; attempt++) {
        const before = current(uid);
        if (!before) return undefined;
        try {
          const changed = await change(before);
          if (changed === before) return before;
          const record = await records.update(changed);
          learn({ kind: 'put', record });
          return record;
        } catch (error) {
          if (!(error instanceof RecordConflict) || attempt === MOST_ATTEMPTS) throw error;
          await this.readAgain(before);
        }
      }
    });
  }

  async inTurn<R>(uid: string, write: () => Promise<R>): Promise<R> {
    const turn = (this.#writing.get(uid) ?? Promise.resolve()).catch(() => undefined).then(write);
    this.#writing.set(uid, turn);
    try {
      return await turn;
    } finally {
      if (this.#writing.get(uid) === turn) this.#writing.delete(uid);
    }
  }

  /** Somebody else's write came first. */
  async readAgain(before: T): Promise<void> {
    const record = await this.#deps.records.get(`${before.owner.namespace}/${before.name}`);
    if (record?.uid === before.uid) this.#deps.learn({ kind: 'put', record });
    else this.#deps.lost(before);
  }
}
