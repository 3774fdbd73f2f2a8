import type { Clock } from '../contracts/clock.ts';
import type { Log } from '../contracts/log.ts';
import type { RecordChange, Records } from '../contracts/record-store.ts';
import type { EnvRecord } from '../model/env.ts';
import { RecentSet } from '../model/recent-set.ts';
import { isNewer } from '../model/revision-order.ts';
import { SharedReads } from '../model/shared-reads.ts';
import { OwnedIndex } from './owned-index.ts';
import { RecordTurns } from './record-turns.ts';

export interface EnvMirrorDeps {
  readonly envs: Records<EnvRecord>;
  readonly clock: Clock;
  readonly log: Log;
}

const MOST_GONE = 1_000;

/** The envs as the store last told of them, and the way to change one. */
export class EnvMirror {
  readonly index = new OwnedIndex();
  readonly #deps: EnvMirrorDeps;
  readonly #records = new Map<string, EnvRecord>();
  /** Envs that are no more, as long as a late word of them may come. */
  readonly #gone = new RecentSet(MOST_GONE);
  readonly #reads: SharedReads<EnvRecord>;
  readonly #turns: RecordTurns<EnvRecord>;
  readonly #followers: ((change: RecordChange<EnvRecord>) => void)[] = [];

  constructor(deps: EnvMirrorDeps) {
    this.#deps = deps;
    this.#reads = new SharedReads({ clock: deps.clock, read: (name) => deps.envs.get(name) });
    this.#turns = new RecordTurns({
      records: deps.envs, current: (uid) => this.#records.get(uid),
      learn: (change) => { this.#learn(change); }, lost: (record) => { this.#learn({ kind: 'gone', record }); },
    });
  }

  /** Reads every env, and follows what anybody changes from then on. */
  async start(): Promise<void> {
    await this.#deps.envs.watch((change) => { this.#learn(change); });
  }

  /** Told of each change after it was taken in, and of what stands already. */
  follow(follower: (change: RecordChange<EnvRecord>) => void): void {
    this.#followers.push(follower);
    for (const record of this.#records.values()) follower({ kind: 'put', record });
  }

  get(uid: string): EnvRecord | undefined { return this.#records.get(uid); }

  named(namespace: string, name: string): EnvRecord | undefined {
    const uid = this.index.uidOf(namespace, name);
    return uid === undefined ? undefined : this.#records.get(uid);
  }

  /** One that the store has just made. */
  add(record: EnvRecord): void { this.#learn({ kind: 'put', record }); }

  /** Reads it uncached: what is shown of it then is no older than this call. */
  async freshen(namespace: string, name: string): Promise<void> {
    this.#found(namespace, name, await this.#deps.envs.get(`${namespace}/${name}`));
  }

  /** The same for one that the mirror doesn't show: read at most once in 250 ms, for all who miss it. */
  async lookUp(namespace: string, name: string): Promise<void> {
    this.#found(namespace, name, await this.#reads.read(`${namespace}/${name}`));
  }

  /** Writes a change of an env's record, as RecordTurns does. */
  async change(uid: string, change: (record: EnvRecord) => EnvRecord | Promise<EnvRecord>): Promise<EnvRecord | undefined> {
    return await this.#turns.change(uid, change);
  }

  /** Removes it as it stands, where `mayGo` still says so. Rejects with RecordConflict or OutcomeUnknown. */
  async remove(uid: string, mayGo: (record: EnvRecord) => boolean): Promise<void> {
    await this.#turns.inTurn(uid, async () => {
      const record = this.#records.get(uid);
      if (!record || !mayGo(record)) return;
      await this.#deps.envs.remove(record);
      this.#learn({ kind: 'gone', record });
    });
  }

  #found(namespace: string, name: string, record: EnvRecord | undefined): void {
    const shown = this.named(namespace, name);
    if (shown && shown.uid !== record?.uid) this.#learn({ kind: 'gone', record: shown });
    if (record) this.#learn({ kind: 'put', record });
  }

  #learn({ kind, record }: RecordChange<EnvRecord>): void {
    const known = this.#records.get(record.uid);
    if (kind === 'gone') {
      this.#gone.add(record.uid);
      if (!known) return;
      this.#records.delete(record.uid);
      this.index.remove(record);
    } else {
      if (known ? !isNewer(record.revision, known.revision) : this.#gone.has(record.uid)) return;
      this.#records.set(record.uid, record);
      if (!known) this.index.add(record);
    }
    for (const follower of this.#followers) {
      try {
        follower({ kind, record });
      } catch (error) {
        this.#deps.log.error({ entity: 'env', uid: record.uid, error }, 'a change of an env could not be taken in');
      }
    }
  }
}
