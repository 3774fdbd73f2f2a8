import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import type { Records } from '../../contracts/record-store.ts';
import type { EnvRecord } from '../../model/envs/env.ts';
import { OwnedIndex } from './owned-index.ts';
import { type MirrorFollower, RecordMirror } from './record-mirror.ts';

export interface EnvMirrorDeps {
  readonly envs: Records<EnvRecord>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Mirrors the envs by their uids, with an index of them by name and by owner. */
export class EnvMirror extends RecordMirror<EnvRecord> {
  readonly index = new OwnedIndex();
  readonly #log: Log;

  constructor({ envs, clock, log }: EnvMirrorDeps) {
    super({
      records: envs,
      clock,
      keyOf: ({ uid }) => uid,
      storeKeyOf: ({ owner, name }) => `${owner.namespace}/${name}`,
      mostRemoved: 0,
    });
    this.#log = log;
    super.follow(({ kind, record }, before) => {
      if (kind === 'gone') this.index.remove(record);
      else if (before) this.index.share(record);
      else this.index.add(record);
    });
  }

  /** Reports as RecordMirror does; what one follower throws keeps nothing from the others. */
  override follow(follower: MirrorFollower<EnvRecord>): void {
    super.follow((change, before) => {
      try {
        follower(change, before);
      } catch (error) {
        this.#log.error(
          { entity: 'env', uid: change.record.uid, error },
          'a change of an env could not be taken in',
        );
      }
    });
  }

  named(namespace: string, name: string): EnvRecord | undefined {
    const uid = this.index.uidOf(namespace, name);
    return uid === undefined ? undefined : this.get(uid);
  }
}
