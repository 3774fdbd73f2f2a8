import type { Supervisor } from '../../actors/sandbox/supervisor.ts';
import type { Coordination } from '../../contracts/coordination.ts';
import { SHARDS } from '../../model/shards.ts';
import type { ReplicaOperations } from './debug-operations.ts';

/**
 * As this replica knows them (operation `GET /debug/shards`). Data about other holders is as old as
 * their last heartbeat.
 */
export const listShards =
  ({
    supervisor,
    coordination,
    replica,
  }: {
    readonly supervisor: Pick<Supervisor, 'shards'>;
    readonly coordination: Pick<Coordination, 'replicas' | 'holders'>;
    readonly replica: string;
  }): ReplicaOperations['shards'] =>
  () => {
    const led = new Set(supervisor.shards);
    const holders = coordination.holders();
    const shards = Array.from({ length: SHARDS }, (_, shard) => {
      const holder = led.has(shard) ? replica : holders.get(shard);
      return { shard, leading: led.has(shard), replica: holder };
    });
    return { replica, replicas: coordination.replicas(), shards };
  };
