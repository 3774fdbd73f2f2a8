import type { Supervisor } from '../actors/sandbox/supervisor.ts';
import type { PublishedKind, StatusPublisher } from '../contracts/record-store.ts';
import { shardOf } from '../model/shards.ts';
import { poolStatus } from '../actors/pool/commands/pool-status.ts';
import type { EnvParts } from './envs.ts';

export interface StatusesOfDaemon {
  /** Looks at each pool and env of the shard, which this replica leads from now on. */
  lead(shard: number): void;
  changed(kind: PublishedKind, uid: string): void;
}

/** Publishes how pools and envs stand, if the assembly has somebody who reads that. */
export const openStatuses = (
  publisher: StatusPublisher | undefined,
  supervisor: () => Supervisor,
  envs: () => Pick<EnvParts, 'mirror' | 'status'>,
): StatusesOfDaemon => {
  if (!publisher) return { lead: () => undefined, changed: () => undefined };
  publisher.publish((kind, uid) =>
    kind === 'pool' ? poolStatus(supervisor(), uid) : envs().status(uid),
  );
  return {
    lead: (shard) => {
      for (const uid of supervisor().pools.actors.keys())
        if (shardOf(uid) === shard) publisher.changed('pool', uid);
      for (const { uid } of envs().mirror.values())
        if (shardOf(uid) === shard) publisher.changed('env', uid);
    },
    changed: (kind, uid) => {
      publisher.changed(kind, uid);
    },
  };
};
