import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import type { RecordChange, Records } from '../../contracts/record-store.ts';
import type { EnvRecord } from '../../model/envs/env.ts';
import { SharedReads } from '../../lib/shared-reads.ts';
import { OwnedIndex } from '../runtime/owned-index.ts';
import { SerializedWriter } from '../runtime/serialized-writer.ts';

export interface EnvMirrorDeps {
  readonly envs: Records<EnvRecord>;
  readonly clock: Clock;
  readonly log: Log;
}

/** The envs as the store last told of them, which is in order, and the way to change one. */
export class EnvMirror {
  readonly index = new OwnedIndex();
  readonly #deps: EnvMirrorDeps;
  readonly #records = new Map<string, EnvRecord>();
  readonly #reads: SharedReads<EnvRecord>;
  readonly #writer: SerializedWriter<EnvRecord>;
  readonly #followers: ((change: RecordChange<EnvRecord>) => void)[] = [];

  constructor(deps: EnvMirrorDeps) {
    this.#deps = deps;
    this.#reads = new SharedReads({ clock: deps.clock, read: (name) => deps.envs.get(name) });
    this.#writer = new SerializedWriter({
      records: deps.envs,
      current: (uid) => this.#records.get(uid),
    });
  }

  /** Reads every env, and follows what anybody changes from then on. */
  async start(): Promise<void> {
    await this.#deps.envs.watch((change) => {
      this.#learn(change);
    });
  }

  /** Resolves once every env that was written before this call has been taken in. */
  async caughtUp(): Promise<void> {
    await this.#deps.envs.caughtUp();
  }

  /** Told of each change after it was taken in, and of what stands already. */
  follow(follower: (change: RecordChange<EnvRecord>) => void): void {
    this.#followers.push(follower);
    for (const record of this.#records.values()) follower({ kind: 'put', record });
  }

  get(uid: string): EnvRecord | undefined {
    return this.#records.get(uid);
  }

  named(namespace: string, name: string): EnvRecord | undefined {
    const uid = this.index.uidOf(namespace, name);
    return uid === undefined ? undefined : this.#records.get(uid);
  }

  /** Reads it uncached: what is shown of it then is no older than this call. */
  async refresh(namespace: string, name: string): Promise<void> {
    await this.#deps.envs.get(`${namespace}/${name}`);
  }

  /**
   * Reads one that the mirror doesn't show, as `refresh` does: at most once in 250 ms, for all who
   * miss it.
   */
  async lookUp(namespace: string, name: string): Promise<void> {
    await this.#reads.read(`${namespace}/${name}`);
  }

  /** Writes a change of an env's record, as SerializedWriter does. */
  async change(
    uid: string,
    change: (record: EnvRecord) => EnvRecord | Promise<EnvRecord>,
  ): Promise<EnvRecord | undefined> {
    return await this.#writer.change(uid, change);
  }

  /**
   * Removes it as it stands, where `mayGo` still says so. Rejects with RecordConflict or
   * OutcomeUnknown.
   */
  async remove(uid: string, mayGo: (record: EnvRecord) => boolean): Promise<void> {
    await this.#writer.runExclusive(uid, async () => {
      const record = this.#records.get(uid);
      if (!record || !mayGo(record)) return;
      await this.#deps.envs.remove(record);
    });
  }

  #learn({ kind, record }: RecordChange<EnvRecord>): void {
    const known = this.#records.get(record.uid);
    if (kind === 'gone') {
      if (!known) return;
      this.#records.delete(record.uid);
      this.index.remove(record);
    } else {
      if (known?.revision === record.revision) return;
      this.#records.set(record.uid, record);
      if (known) this.index.share(record);
      else this.index.add(record);
    }
    for (const follower of this.#followers) {
      try {
        follower({ kind, record });
      } catch (error) {
        this.#deps.log.error(
          { entity: 'env', uid: record.uid, error },
          'a change of an env could not be taken in',
        );
      }
    }
  }
}
