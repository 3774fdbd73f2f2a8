import type { Supervisor } from '../actors/sandbox/supervisor.ts';
import type { ShardParticipant } from '../actors/runtime/shard-participant.ts';
import type { StatusPublisher } from '../contracts/record-store.ts';
import type { PoolRecord } from '../model/pools/pool.ts';
import { shardOf } from '../model/shards.ts';
import { poolStatus } from '../actors/pool/commands/pool-status.ts';
import type { EnvParts } from './envs.ts';

export interface StatusesOfDaemon extends Pick<ShardParticipant, 'onShardAcquired'> {
  readonly poolChanged: (record: Pick<PoolRecord, 'uid'>) => void;
  readonly envChanged: (uid: string) => void;
}

/**
 * Covers the shards that this replica leads. Undefined if nobody reads the status in this assembly.
 */
export const openStatuses = (
  publisher: StatusPublisher | undefined,
  supervisor: () => Supervisor,
  envs: () => Pick<EnvParts, 'mirror' | 'status'>,
): StatusesOfDaemon | undefined => {
  if (!publisher) return undefined;
  publisher.publish((kind, uid) =>
    kind === 'pool' ? poolStatus(supervisor(), uid) : envs().status(uid),
  );
  return {
    onShardAcquired: (shard) => {
      for (const uid of supervisor().pools.actors.keys())
        if (shardOf(uid) === shard) publisher.changed('pool', uid);
      for (const { uid } of envs().mirror.values())
        if (shardOf(uid) === shard) publisher.changed('env', uid);
    },
    poolChanged: ({ uid }) => {
      publisher.changed('pool', uid);
    },
    envChanged: (uid) => {
      publisher.changed('env', uid);
    },
  };
};
