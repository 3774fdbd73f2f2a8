import type { ShardParticipant } from '../actors/runtime/shard-participant.ts';
import type { PoolRenewal } from '../actors/pool/commands/pool-renewal.ts';
import type { ApprovalsOfDaemon } from './assembly/approvals.ts';
import type { Assembly } from './assembly/assembly.ts';
import type { EnvParts } from './envs.ts';
import type { StatusesOfDaemon } from './statuses.ts';

export interface Participants {
  readonly records: Pick<Assembly['records'], 'templates'>;
  readonly renewal: Pick<PoolRenewal, 'lead'>;
  readonly envs: EnvParts;
  readonly approvals: Pick<ApprovalsOfDaemon, 'host' | 'mirror' | 'webhooks'>;
  readonly statuses: StatusesOfDaemon;
}

/** Makes one of all that lead as the supervisor does, beside it; they are made after it. */
export const participantsOf = (all: () => Participants): ShardParticipant => ({
  onShardAcquired: (shard) => {
    const { renewal, envs, approvals, statuses } = all();
    renewal.lead(shard);
    statuses.lead(shard);
    envs.onShardAcquired(shard);
    approvals.host.actors.lead(shard);
    approvals.webhooks?.lead(shard);
  },
  onShardReleased: (shard) => {
    const { envs, approvals } = all();
    envs.onShardReleased(shard);
    approvals.host.actors.follow(shard);
  },
  claimed: (poolUid, last) => {
    all().envs.claimed(poolUid, last);
  },
  startFailed: (poolUid) => {
    all().envs.startFailed(poolUid);
  },
  poolChanged: (record) => {
    const { envs, statuses } = all();
    envs.poolChanged(record);
    statuses.changed('pool', record.uid);
  },
  caughtUp: async () => {
    const { records, envs, approvals } = all();
    await Promise.all([envs.caughtUp(), records.templates.caughtUp(), approvals.mirror.caughtUp()]);
  },
});
