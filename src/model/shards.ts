/**
 * Keys fall into 16 shards by pool uid; a shard's autonomous work is done by the replica that holds
 * its lease.
 */
export const SHARDS = 16;

export const shardOf = (poolUid: string): number => {
  let hash = 0;
  for (let i = 0; i < poolUid.length; i++) hash = (hash * 31 + poolUid.charCodeAt(i)) >>> 0;
  return hash % SHARDS;
};
